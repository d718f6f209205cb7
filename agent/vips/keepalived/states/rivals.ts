// Detects two masters of one instance, and logs when that begins and ends. After a change of master a few advertisements
// of the old one still arrive; a master that keeps receiving them is not alone.

import { type Clock, systemClock } from '../../../base/clock.ts';
import type { Log } from '../../../host/log.ts';

/** A change of master takes at most this long. */
const HANDOVER_ADVERTS = 2;
/** A rival without an advertisement for this long is gone. */
const SILENCE_ADVERTS = 5;

export class Rivals {
  readonly #advertInterval: () => number;
  readonly #log: Log;
  readonly #clock: Clock;
  /** By instance: the times of the first and the last advertisement of another master. */
  readonly #received = new Map<string, { readonly since: number; readonly last: number }>();
  #hadRivals = false;

  /** `advertInterval` in milliseconds. */
  constructor(advertInterval: () => number, log: Log, clock: Clock = systemClock) {
    this.#advertInterval = advertInterval;
    this.#log = log;
    this.#clock = clock;
  }

  /** This host is master of the instance and has received an advertisement of another master. */
  received(instance: string): void {
    const before = this.#received.get(instance);
    const last = this.#clock.monotonic();
    const since = before === undefined || this.#isOver(before.last) ? last : before.since;
    this.#received.set(instance, { since, last });
    this.check();
  }

  /** To be called from time to time, because the end of a rival is only a silence. */
  check(): void {
    const { fault } = this;
    const hasRivals = fault !== '';
    if (hasRivals === this.#hadRivals) return;
    this.#hadRivals = hasRivals;
    if (hasRivals) this.#log.error(fault);
    else this.#log.info('There is one master again');
  }

  /** Names of the instances that have a second master. */
  get instances(): readonly string[] {
    const leastMs = HANDOVER_ADVERTS * this.#advertInterval();
    return [...this.#received]
      .filter(([, { since, last }]) => last - since >= leastMs && !this.#isOver(last))
      .map(([instance]) => instance);
  }

  /** '' if there is no second master. */
  get fault(): string {
    const { instances } = this;
    return instances.length === 0 ? '' : `Two hosts are master at once: ${instances.join(', ')}`;
  }

  #isOver(last: number): boolean {
    return this.#clock.monotonic() - last > SILENCE_ADVERTS * this.#advertInterval();
  }
}
