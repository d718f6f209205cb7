// Keeps the operating status of all load balancers up to date, behind everything that is urgent: who touches one, or
// finds something else by a check, only says so.

import type { DataplaneFacts, MemberFacts } from '../../health/operating-status.ts';
import { StatusBook } from '../../health/status-book.ts';
import { Slice } from '../base/slice.ts';
import type { HaproxyDataplane } from '../haproxy/dataplane.ts';
import type { LoadBalancer } from '../model/load-balancer.ts';

export interface OperatingOptions {
  readonly loadBalancers: ReadonlyMap<string, LoadBalancer>;
  readonly haproxy: Pick<HaproxyDataplane, 'serves' | 'members' | 'checks'>;
  /** These are doing otherwise than before. */
  readonly onChanged: (keys: readonly string[]) => void;
}

/** What HAProxy has acknowledged, and what its checks have found. */
export function dataplaneFacts(haproxy: OperatingOptions['haproxy']): DataplaneFacts {
  return {
    serves: (listener) => haproxy.serves(listener),
    member: (listener, name): MemberFacts | undefined => {
      const server = haproxy.members(listener).get(name);
      if (server === undefined) return undefined;
      const result = haproxy.checks(listener).get(name);
      return { state: server.state, isDown: result?.isDown, cause: result?.cause ?? '' };
    },
  };
}

export class Operating {
  readonly book = new StatusBook();
  readonly #options: OperatingOptions;
  readonly #facts: DataplaneFacts;
  readonly #due = new Set<string>();
  #isAtWork = false;

  constructor(options: OperatingOptions) {
    this.#options = options;
    this.#facts = dataplaneFacts(options.haproxy);
  }

  touched(keys: Iterable<string>): void {
    for (const key of keys) this.#due.add(key);
    if (!this.#isAtWork && this.#due.size > 0) void this.#work();
  }

  async #work(): Promise<void> {
    this.#isAtWork = true;
    const slice = new Slice();
    await slice.breathe();
    const changed: string[] = [];
    for (const key of this.#due) {
      this.#due.delete(key);
      if (this.book.update(key, this.#options.loadBalancers.get(key), this.#facts)) changed.push(key);
      if (slice.isOver) await slice.breathe();
    }
    this.#isAtWork = false;
    if (changed.length > 0) this.#options.onChanged(changed);
  }
}
