// Detects instances whose advertisements have stopped: a master that sends none, and a backup that receives none. A
// keepalived whose interface was made again or renamed is in that state, and answers the agent all the same.

import type { VrrpStateName } from '../../vrrp.ts';
import { stillAfterMs } from '../process/pulse.ts';
import type { InstanceCounts } from './vrrp-counters.ts';

interface Flow {
  readonly state: VrrpStateName;
  /** Advertisements that a master has sent, or a backup has received. */
  readonly count: number;
  /** When this count was seen first, milliseconds of a monotonic clock. */
  readonly since: number;
}

export class AdvertFlow {
  readonly #advertInterval: () => number;
  /** By instance; only masters and backups. */
  readonly #flows = new Map<string, Flow>();
  #stopped: readonly string[] = [];

  /** `advertInterval` in milliseconds. */
  constructor(advertInterval: () => number) {
    this.#advertInterval = advertInterval;
  }

  /** '' if advertisements flow, as of the last judge(). */
  get fault(): string {
    const names = this.#stopped.join(', ');
    return names && `keepalived sends and receives no advertisements of ${names}`;
  }

  /** As of the last judge(). */
  hasStopped(instance: string): boolean {
    return this.#stopped.includes(instance);
  }

  /** Takes the counters of all instances, as keepalived has just reported them. */
  judge(instances: readonly InstanceCounts[], now: number): void {
    const stopped: string[] = [];
    for (const { name, state, adverts } of instances) {
      const before = this.#flows.get(name);
      const count = state === 'master' ? adverts.sent : adverts.received;
      const isSame = before?.state === state && before.count === count;
      if (state !== 'master' && state !== 'backup') this.#flows.delete(name);
      else if (!isSame) this.#flows.set(name, { state, count, since: now });
      else if (this.#stopped.includes(name) || now - before.since > stillAfterMs(this.#advertInterval()))
        stopped.push(name);
    }
    this.#stopped = stopped;
  }
}
