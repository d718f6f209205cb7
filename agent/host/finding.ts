// What a check of this host has found.

export interface Finding {
  readonly what: string;
  readonly ok: boolean;
  /** The finding, and the remedy if it is a fault. */
  readonly detail: string;
}
