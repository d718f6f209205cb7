// Logs what was listed from the API server: one line for all kinds that follow each other, such as after a reconnect.

import { type Clock, systemClock } from '../base/clock.ts';
import type { Log } from '../host/log.ts';

/** From the first list to the line. */
const PERIOD_MS = 5_000;

export class ListLines {
  readonly #log: Log;
  readonly #clock: Clock;
  #kinds = new Set<string>();
  #reasons = new Set<string>();
  #objects = 0;

  constructor(log: Log, clock: Clock = systemClock) {
    this.#log = log;
    this.#clock = clock;
  }

  listed(kind: string, reason: string, objects: number, milliseconds: number): void {
    this.#log.debug('Listed a kind of the API server', {
      kind,
      reason,
      objects,
      ms: Math.round(milliseconds),
    });
    if (this.#kinds.size === 0) this.#clock.after(PERIOD_MS, () => this.#line());
    this.#kinds.add(kind);
    this.#reasons.add(reason);
    this.#objects += objects;
  }

  #line(): void {
    const [kinds, reasons, objects] = [this.#kinds, [...this.#reasons], this.#objects];
    this.#kinds = new Set();
    this.#reasons = new Set();
    this.#objects = 0;
    // The name of a single kind says more than its number.
    const which = kinds.size === 1 ? { kind: [...kinds][0] } : { kinds: kinds.size };
    this.#log.info('Listed the objects of the API server', { ...which, reasons, objects });
  }
}
