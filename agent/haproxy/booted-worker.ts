// A HAProxy worker, and what it booted from.

import type { LoadBalancer } from '../model/load-balancer.ts';
import type { Running } from './running.ts';
import type { Runtime } from './socket/runtime.ts';

export interface Worker {
  /** A connection to this worker only. */
  readonly runtime: Runtime;
  readonly running: Running;
}

/** A worker and the file it booted from. */
export interface BootedWorker extends Worker {
  /** The load balancers in that file, by key; empty for an unknown file. */
  readonly booted: ReadonlyMap<string, LoadBalancer>;
  /** As in its description; '' for an unknown file. */
  readonly structure: string;
  /** `address port` of all its listeners; undefined if unknown. */
  readonly bound: ReadonlySet<string> | undefined;
}
