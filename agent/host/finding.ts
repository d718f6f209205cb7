// What a check of this host has found.

export interface Finding {
  readonly what: string;
  readonly ok: boolean;
  /** The host can run the agent, and something will not work as it is. */
  readonly isWarning?: true;
  /** The finding, and the remedy if it is a fault. */
  readonly detail: string;
}

export function good(what: string, detail: string): Finding {
  return { what, ok: true, detail };
}

export function warning(what: string, detail: string): Finding {
  return { what, ok: true, isWarning: true, detail };
}

export function bad(what: string, detail: string): Finding {
  return { what, ok: false, detail };
}
