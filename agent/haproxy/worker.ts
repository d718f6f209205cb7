// One HAProxy worker, as everything that works on it sees it.

import type { LoadBalancer } from '../model/load-balancer.ts';
import type { Running } from './running.ts';
import type { Runtime } from './socket/runtime.ts';

export interface Worker {
  /** The connection that is pinned to it. */
  readonly runtime: Runtime;
  /** What it is known to run. */
  readonly running: Running;
}

/** A worker and the file it booted from. */
export interface BootedWorker extends Worker {
  /** What that file held, by key; empty where another file than ours was booted. */
  readonly booted: ReadonlyMap<string, LoadBalancer>;
  /** As in its description; '' where that is none of ours. */
  readonly structure: string;
  /** `address port` of all that it listens on; undefined where that is not known. */
  readonly bound: ReadonlySet<string> | undefined;
}
