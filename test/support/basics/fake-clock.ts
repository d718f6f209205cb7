// A `Clock` that advances only when a test advances it.

import type { Clock } from '../../../agent/base/clock.ts';

export class FakeClock implements Clock {
  #now = 1_000;
  /** A test can set the time of day without a change of monotonic(). */
  epoch = Date.UTC(2026, 10, 20, 19, 0, 0);
  #timers: { readonly at: number; readonly callback: () => void }[] = [];

  monotonic(): number {
    return this.#now;
  }

  wall(): number {
    return this.epoch + this.#now;
  }

  after(milliseconds: number, callback: () => void): () => void {
    const timer = { at: this.#now + Math.max(0, milliseconds), callback };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((each) => each !== timer);
    };
  }

  /** Runs timers in their order, each after the promises of the earlier timers have settled. */
  async advance(milliseconds: number): Promise<void> {
    const end = this.#now + milliseconds;
    await settled();
    for (;;) {
      const [next] = this.#timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at);
      if (next === undefined) break;
      this.#timers = this.#timers.filter((each) => each !== next);
      this.#now = Math.max(this.#now, next.at);
      next.callback();
      await settled();
    }
    this.#now = Math.max(this.#now, end);
    await settled();
  }

  /** Timers are set. */
  get isWaiting(): boolean {
    return this.#timers.length > 0;
  }

  /** Advances the time without running timers, like a blocked event loop. */
  hang(milliseconds: number): void {
    this.#now += milliseconds;
  }
}

/** Resolves after the callbacks of all fulfilled promises have run. */
export async function settled(): Promise<void> {
  for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve));
}
