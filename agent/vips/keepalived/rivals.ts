// Detects two masters of one instance. After a change of master a few advertisements of the old one still arrive; a
// master that keeps receiving them is not alone.

import type { Log } from '../../host/log.ts';

/** A change of master takes at most this long. */
const HANDOVER_ADVERTS = 2;
/** A rival without an advertisement for this long is gone. */
const SILENCE_ADVERTS = 5;

/** Pure: the time comes in as an argument, in milliseconds. */
export class Rivals {
  readonly #advertInterval: () => number;
  /** By instance: the first and the last advertisement of another master. */
  readonly #received = new Map<string, { readonly since: number; readonly last: number }>();

  /** `advertInterval` in milliseconds. */
  constructor(advertInterval: () => number) {
    this.#advertInterval = advertInterval;
  }

  /** This host is master of the instance and has received an advertisement of another master. */
  received(instance: string, now: number): void {
    const before = this.#received.get(instance);
    const since = before === undefined || this.#isOver(before.last, now) ? now : before.since;
    this.#received.set(instance, { since, last: now });
  }

  /** The instances that have a second master. */
  current(now: number): readonly string[] {
    const leastMs = HANDOVER_ADVERTS * this.#advertInterval();
    return [...this.#received]
      .filter(([, { since, last }]) => last - since >= leastMs && !this.#isOver(last, now))
      .map(([instance]) => instance);
  }

  #isOver(last: number, now: number): boolean {
    return now - last > SILENCE_ADVERTS * this.#advertInterval();
  }
}

/** Logs the begin and the end of a time with two masters. */
export class RivalWatch {
  readonly #rivals: Rivals;
  readonly #log: Log;
  #hadRivals = false;

  constructor(advertInterval: () => number, log: Log) {
    this.#rivals = new Rivals(advertInterval);
    this.#log = log;
  }

  /** As Rivals.received(). */
  received(instance: string): void {
    this.#rivals.received(instance, performance.now());
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
    return this.#rivals.current(performance.now());
  }

  /** '' if there is none. */
  get fault(): string {
    const { instances } = this;
    return instances.length === 0 ? '' : `Two hosts are master at once: ${instances.join(', ')}`;
  }
}
