// How long a reflector waits before it asks again: not at all while all is well, longer with each attempt in a row that
// failed or brought nothing, and no longer once somebody else has been answered. Owns the timer of the wait.

import { apiBackoffMs } from './api-answer.ts';

/** Milliseconds before a watch that worked is begun again after its connection broke. */
const SOON = 100;

export class Attempts {
  /** 0 to 1. */
  readonly #random: () => number;
  /** In a row that the API server did not answer as asked. */
  #failures = 0;
  /** Watches in a row that were opened and brought nothing. */
  #fruitless = 0;
  #wake: (() => void) | undefined;
  /** Whoever answered last has asked for the wait (`Retry-After`). */
  #isAsked = false;

  constructor(random: () => number) {
    this.#random = random;
  }

  failed(): void {
    this.#failures++;
  }

  /** True where the attempt before had failed. */
  answered(): boolean {
    const hadFailed = this.#failures > 0;
    this.#failures = 0;
    return hadFailed;
  }

  watched(worked: boolean): void {
    this.#fruitless = worked ? 0 : this.#fruitless + 1;
  }

  /** Milliseconds until the next one; `asked`: at least so many, by whoever answered; `isBroken`: the connection was. */
  pause(asked: number, isBroken: boolean): number {
    this.#isAsked = asked > 0;
    return Math.max(asked, this.#own(isBroken));
  }

  async wait(milliseconds: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, milliseconds);
    this.#wake = resolve;
    await promise;
    this.#wake = undefined;
    clearTimeout(timer);
  }

  /** The API server is there: a wait after failures ends now, unless it has asked for it. */
  nudge(): void {
    if (this.#failures > 0 && !this.#isAsked) this.wake();
  }

  /** Any wait ends now. */
  wake(): void {
    this.#wake?.();
  }

  #own(isBroken: boolean): number {
    if (this.#failures > 0) return apiBackoffMs(this.#failures, this.#random);
    if (this.#fruitless > 1) return apiBackoffMs(this.#fruitless - 1, this.#random);
    return isBroken ? SOON * this.#random() : 0;
  }
}
