// Keeps the operating status of all load balancers up to date, behind everything that is urgent.

import { Slice } from '../base/slice.ts';
import type { LoadBalancer } from '../model/load-balancer.ts';
import type { ChangeObserver } from './change-observers.ts';
import type { HealthFacts } from './operating-status.ts';
import { StatusBook } from './status-book.ts';

export interface HealthTrackerOptions {
  readonly loadBalancers: ReadonlyMap<string, LoadBalancer>;
  readonly dataplane: HealthFacts;
  /** The health of these is another than before. */
  readonly onChanged: (keys: ReadonlySet<string>) => void;
}

export class HealthTracker implements ChangeObserver {
  readonly book = new StatusBook();
  readonly #options: HealthTrackerOptions;
  readonly #due = new Set<string>();
  #isAtWork = false;

  constructor(options: HealthTrackerOptions) {
    this.#options = options;
  }

  changed(keys: ReadonlySet<string>): void {
    for (const key of keys) this.#due.add(key);
    if (!this.#isAtWork && this.#due.size > 0) void this.#work();
  }

  async #work(): Promise<void> {
    this.#isAtWork = true;
    const { loadBalancers, dataplane, onChanged } = this.#options;
    const slice = new Slice();
    await slice.breathe();
    const changed = new Set<string>();
    for (const key of this.#due) {
      this.#due.delete(key);
      if (this.book.update(key, loadBalancers.get(key), dataplane)) changed.add(key);
      if (slice.isOver) await slice.breathe();
    }
    this.#isAtWork = false;
    if (changed.size > 0) onChanged(changed);
  }
}
