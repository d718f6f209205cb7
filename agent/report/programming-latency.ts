// The SLI of Kubernetes for network programming: from the moment when pods changed, as their EndpointSlice says it, to
// the moment when HAProxy has acknowledged the change, by commands or by the reload that brought it to life.
// Owns the times of changes that are not live yet; its work is proportional to what changed.

import type { Change } from '../changes.ts';
import type { Outcome, Plan } from '../dataplane/dataplane.ts';

/** What made a change live: commands, or the worker that a reload (or, where there was none, a start) brought. */
export type ProgrammingPath = 'runtime' | 'reload';

export interface ProgrammingLatencyOptions {
  /** Milliseconds since the epoch: the times of change are of other hosts. */
  readonly now: () => number;
  /** Whether HAProxy serves anything of this load balancer. */
  readonly isServed: (key: string) => boolean;
  /** Once for each change. */
  readonly observe: (path: ProgrammingPath, seconds: number) => void;
}

/** Changes of one load balancer that are kept while no worker takes them; what comes then is not counted. */
const MOST = 1_000;

export class ProgrammingLatency {
  readonly #options: ProgrammingLatencyOptions;
  /** Key → the times of changes that only another worker brings to life. */
  readonly #waiting = new Map<string, readonly number[]>();

  constructor(options: ProgrammingLatencyOptions) {
    this.#options = options;
  }

  /** Load balancers whose changes wait. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * What a round of the loop planned and did. A change that asks nothing of the dataplane, because no member differs or
   * because nothing of its Service is served, is not counted.
   */
  applied(plans: readonly Plan[], outcome: Outcome, changed: ReadonlyMap<string, Change>): void {
    const planned = new Set(plans.map(({ key }) => key));
    // Nothing could be planned: a worker that starts does so with the desired state of that time.
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
    this.#waiting.set(key, [...(this.#waiting.get(key) ?? []), ...triggers].slice(0, MOST));
  }

  /** A clock that is behind the other host's, or was set back, gives 0. */
  #observe(path: ProgrammingPath, triggers: readonly number[]): void {
    const now = this.#options.now();
    for (const trigger of triggers) this.#options.observe(path, Math.max(0, now - trigger) / 1000);
  }
}
