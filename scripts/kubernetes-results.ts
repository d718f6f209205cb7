// Reads the reports of Kubernetes' tests, which ginkgo writes as JSON. Pure.

export interface TestResult {
  /** The name of the role of Headgate. */
  readonly role: string;
  /** Without tags in brackets. */
  readonly name: string;
  readonly outcome: 'passed' | 'skipped' | 'failed';
  readonly seconds: number;
  /** Why it failed, or skipped itself; '' otherwise. */
  readonly message: string;
}

/** The parts of a report that count here. */
interface Report {
  readonly SpecReports: readonly Spec[] | null;
}

interface Spec {
  readonly LeafNodeType: string;
  readonly ContainerHierarchyTexts: readonly string[] | null;
  readonly LeafNodeText: string;
  readonly State: string;
  /** Nanoseconds. */
  readonly RunTime: number;
  readonly Failure?: { readonly Message?: string };
}

/** Name without tags → full name, of every test in a report. */
export function testNames(json: string): ReadonlyMap<string, string> {
  return new Map(specsOf(json).map((spec) => [nameOf(fullNameOf(spec)), fullNameOf(spec)]));
}

/** The results of the tests that were meant to run; one that the report lacks has failed. */
export function resultsOf(json: string, role: string, names: readonly string[]): readonly TestResult[] {
  const specs = new Map(specsOf(json).map((spec) => [nameOf(fullNameOf(spec)), spec]));
  return names.map((name) => {
    const spec = specs.get(name);
    const message = spec?.Failure?.Message ?? '';
    const seconds = Math.round((spec?.RunTime ?? 0) / 1e9);
    if (spec?.State === 'passed') return { role, name, outcome: 'passed', seconds, message };
    // Ginkgo also calls a test skipped that nothing has asked to run; it then gives no reason.
    if (spec?.State === 'skipped' && message !== '')
      return { role, name, outcome: 'skipped', seconds, message };
    return { role, name, outcome: 'failed', seconds, message: message || 'It did not run.' };
  });
}

function specsOf(json: string): readonly Spec[] {
  const reports: readonly Report[] = JSON.parse(json);
  return reports
    .flatMap(({ SpecReports }) => SpecReports ?? [])
    .filter(({ LeafNodeType }) => LeafNodeType === 'It');
}

function fullNameOf({ ContainerHierarchyTexts, LeafNodeText }: Spec): string {
  return [...(ContainerHierarchyTexts ?? []), LeafNodeText].join(' ');
}

function nameOf(fullName: string): string {
  return fullName.replace(/ ?\[[^\]]*\]/g, '').trim();
}
