// A clock that stands still until a test moves it, for what takes `Clock`.

import type { Clock } from '../../../agent/base/clock.ts';

export class FakeClock implements Clock {
  #now = 1_000;
  /** The time of day may be set for itself: it is not what anything should be measured with. */
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

  /** Timers go off in their order, each when all that came of those before it has settled. */
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

  /** Time passes, but nothing can run: the event loop is held up. */
  hang(milliseconds: number): void {
    this.#now += milliseconds;
  }
}

/** Promises that are fulfilled already have had their turn. */
export async function settled(): Promise<void> {
  for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve));
}
