// The contract of a HAProxy that runs a text as its author pushed it: the text is the truth and runs unchanged.

/** `none`: the text says the same; `runtime`: commands were enough; `reload`: also the start of a HAProxy that was down. */
export type PushResult = 'none' | 'runtime' | 'reload';

/** One row of HAProxy's `show stat`, by the names of its columns. */
export type StatRow = ReadonlyMap<string, string>;

export interface PushedStatus {
  /** The worker answers on its socket. */
  readonly isRunning: boolean;
  /** MD5 of the text that the worker serves; '' if none. */
  readonly text: string;
  /** Since when it is served. */
  readonly since: Date | undefined;
  /** Why the last reload was needed, such as `bind of frontend … differs`; '' if none was. */
  readonly cause: string;
  /** Why the last push failed; '' if it did not. */
  readonly fault: string;
}

/** The HAProxy of one load balancer. Calls for one load balancer come one after another. */
export interface PushedHaproxy {
  /** Takes over the worker that an agent before this one has started, if there is one. Starts nothing. */
  adopt(): Promise<void>;
  /** Lets HAProxy check a text before anything is stored. Errors: HAPROXY_REJECTED with HAProxy's words; FILE_WRITE. */
  check(text: string): Promise<void>;
  /**
   * Brings the worker to this text; starts HAProxy if it is down. Errors: HAPROXY_START, HAPROXY_RELOAD, FILE_WRITE; the last
   * text runs on.
   */
  run(text: string): Promise<PushResult>;
  /** Ends HAProxy and waits until it is gone. */
  stop(): Promise<void>;
  /** Closes the connections to HAProxy, which continues. */
  close(): void;
  /** The rows of `show stat`; undefined if HAProxy does not answer. */
  stats(): Promise<readonly StatRow[] | undefined>;
  status(): PushedStatus;
}
