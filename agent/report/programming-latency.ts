// The network programming latency of Kubernetes: from the change of pods, whose time their EndpointSlice has, until
// HAProxy has acknowledged it, by commands or by a reload. Owns the times of changes that are not live yet; the work is
// proportional to the change.

import type { Change } from '../changes.ts';
import type { Outcome, Plan } from '../dataplane/forwarder.ts';

/** What made a change live: commands, or the new worker of a reload or a start. */
export type ProgrammingPath = 'runtime' | 'reload';

export interface ProgrammingLatencyOptions {
  /** Milliseconds since the epoch, as the times of other hosts. */
  readonly now: () => number;
  /** HAProxy serves a listener of this load balancer. */
  readonly isServed: (key: string) => boolean;
  /** Once for each change. */
  readonly observe: (path: ProgrammingPath, seconds: number) => void;
}

/** The most changes of one load balancer without a new worker; later changes are not counted. */
const MAX_WAITING_CHANGES = 1_000;

export class ProgrammingLatency {
  readonly #options: ProgrammingLatencyOptions;
  /** Key → the times of changes that only another worker makes live. */
  readonly #waiting = new Map<string, readonly number[]>();

  constructor(options: ProgrammingLatencyOptions) {
    this.#options = options;
  }

  /** Load balancers whose changes wait. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** After a round of the loop. A change without an effect on the dataplane is not counted. */
  applied(plans: readonly Plan[], outcome: Outcome, changed: ReadonlyMap<string, Change>): void {
    const planned = new Set(plans.map(({ key }) => key));
    // Without a plan: the next worker starts with the desired state.
    for (const [key, { triggers }] of changed) if (!planned.has(key)) this.#wait(key, triggers);
    for (const key of planned) this.#planned(key, outcome, changed.get(key)?.triggers ?? []);
  }

  #planned(key: string, { acknowledged, pending }: Outcome, triggers: readonly number[]): void {
    const waiting = this.#waiting.get(key);
    if (triggers.length === 0 && waiting === undefined) return;
    if (pending.has(key)) {
      this.#wait(key, triggers);
      return;
    }
    this.#waiting.delete(key);
    if (!this.#options.isServed(key)) return;
    if (waiting !== undefined) this.#observe('reload', waiting);
    if (acknowledged.has(key)) this.#observe('runtime', triggers);
  }

  #wait(key: string, triggers: readonly number[]): void {
    if (triggers.length === 0) return;
    this.#waiting.set(key, [...(this.#waiting.get(key) ?? []), ...triggers].slice(0, MAX_WAITING_CHANGES));
  }

  /** 0 if this host's clock is behind that of the other host. */
  #observe(path: ProgrammingPath, triggers: readonly number[]): void {
    const now = this.#options.now();
    for (const trigger of triggers) this.#options.observe(path, Math.max(0, now - trigger) / 1000);
  }
}
