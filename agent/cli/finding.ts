// One line of what `headgate check` says.

export interface Finding {
  readonly what: string;
  readonly ok: boolean;
  /** What was found and, where it is bad, what to do. */
  readonly detail: string;
}
