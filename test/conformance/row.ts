// What Kubernetes asks of a load balancer is a table of rows in sections. Which tests show a row is said by the tests:
// `// Conformance: FIELD` above a test, `# Conformance: FIELD` at the top of a case.

export interface Section {
  readonly title: string;
  readonly rows: readonly Row[];
}

export interface Row {
  /** A field, or a trap in a few words; no other row has it. */
  readonly field: string;
  /** What Headgate does, one sentence each. */
  readonly rule: readonly string[];
  /** The part of the rule that is not built. */
  readonly notYet?: string;
}
