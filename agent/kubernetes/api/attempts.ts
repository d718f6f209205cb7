// How long a reflector waits before its next request: not at all without failures, longer with each request in a row that
// failed or brought nothing, and no longer once the API server answers another reflector. Owns the timer of the wait.

import { type Clock, systemClock } from '../../base/clock.ts';
import { apiBackoffMs } from './api-answer.ts';

/** At most, before a useful watch begins again after its connection broke. */
const RECONNECT_DELAY_MS = 100;

export class Attempts {
  /** 0 to 1. */
  readonly #random: () => number;
  readonly #clock: Clock;
  /** Failed requests in a row. */
  #failures = 0;
  /** Watches in a row that were open and brought nothing. */
  #fruitless = 0;
  #wake: (() => void) | undefined;
  /** The last answer asked for the wait (`Retry-After`). */
  #isAsked = false;

  constructor(random: () => number, clock: Clock = systemClock) {
    this.#random = random;
    this.#clock = clock;
  }

  failed(): void {
    this.#failures++;
  }

  /** True if the request before failed. */
  answered(): boolean {
    const hadFailed = this.#failures > 0;
    this.#failures = 0;
    return hadFailed;
  }

  watched(isUseful: boolean): void {
    this.#fruitless = isUseful ? 0 : this.#fruitless + 1;
  }

  /** Milliseconds; at least `askedMs`, for which the API server asked. `isBroken`: the connection broke. */
  pause(askedMs: number, isBroken: boolean): number {
    this.#isAsked = askedMs > 0;
    return Math.max(askedMs, this.#own(isBroken));
  }

  async wait(milliseconds: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#clock.after(milliseconds, resolve);
    this.#wake = resolve;
    await promise;
    this.#wake = undefined;
    cancel();
  }

  /** The API server answers: a wait after failures ends now, unless the API server asked for it. */
  nudge(): void {
    if (this.#failures > 0 && !this.#isAsked) this.wake();
  }

  /** Ends any wait. */
  wake(): void {
    this.#wake?.();
  }

  #own(isBroken: boolean): number {
    if (this.#failures > 0) return apiBackoffMs(this.#failures, this.#random);
    if (this.#fruitless > 1) return apiBackoffMs(this.#fruitless - 1, this.#random);
    return isBroken ? RECONNECT_DELAY_MS * this.#random() : 0;
  }
}
