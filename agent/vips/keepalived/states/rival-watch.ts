// Says once that two hosts are master at once, and once that it is over.

import type { Log } from '../../../host/log.ts';
import { Rivals } from './rivals.ts';

export class RivalWatch {
  readonly #rivals: Rivals;
  readonly #log: Log;
  #hadRivals = false;

  /** `advertInterval` in milliseconds. */
  constructor(advertInterval: () => number, log: Log) {
    this.#rivals = new Rivals(advertInterval);
    this.#log = log;
  }

  /** This instance, a master, has heard another one. */
  heard(instance: string): void {
    this.#rivals.heard(instance, performance.now());
    this.look();
  }

  /** To be called from time to time, because nobody tells that a rival is gone. */
  look(): void {
    const { fault } = this;
    const hasRivals = fault !== '';
    if (hasRivals === this.#hadRivals) return;
    this.#hadRivals = hasRivals;
    if (hasRivals) this.#log.error(fault);
    else this.#log.info('There is one master again');
  }

  /** Names of the instances. */
  get instances(): readonly string[] {
    return this.#rivals.current(performance.now());
  }

  /** '' where there is none. */
  get fault(): string {
    const { instances } = this;
    return instances.length === 0 ? '' : `Two hosts are master at once: ${instances.join(', ')}`;
  }
}
