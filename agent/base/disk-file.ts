// A file of the agent's state on disk, as the status and the page show it. Values only.

export interface DiskFile {
  readonly path: string;
  /** When this agent has written it last, in milliseconds since the epoch; 0: not yet. */
  readonly writtenAt: number;
  /** Why it is not up to date; '' if it is, or will be soon. */
  readonly fault: string;
}
