// How many new connections have arrived at this host lately, counted only while this host or another one moves clients away: it
// then reports the number to the others, so that a host without new connections can compare itself with them.

import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { Rounds } from '../../base/rounds.ts';
import { serial } from '../../base/serial.ts';
import type { ArrivalCounter, Arriving } from './arrival-counter.ts';

export interface ArrivalsOptions {
  readonly counter: Pick<ArrivalCounter, 'open' | 'read' | 'close'>;
  readonly arriving: () => Arriving;
  /** The number may have changed. */
  readonly onCounted: () => void;
  readonly clock: Clock;
}

/** Who wants the number: an order on this host, or other hosts. */
type Asker = 'order' | 'others';

/** Stands for a number that is not known. */
export const NOT_COUNTED = -1;
const READ_INTERVAL_MS = 100;

export class Arrivals {
  readonly #options: ArrivalsOptions;
  readonly #askers = new Set<Asker>();
  readonly #turns = serial();
  readonly #rounds: Rounds;
  #isOpen = false;
  #count = NOT_COUNTED;
  #fault = '';

  constructor(options: ArrivalsOptions) {
    this.#options = options;
    this.#rounds = new Rounds({
      intervalMs: () => READ_INTERVAL_MS,
      work: () => this.#turns.run(() => this.#read()),
      onFailed: (error) => this.#fail(error),
      clock: options.clock,
    });
  }

  /** Since it is counted; NOT_COUNTED if it is not. */
  get count(): number {
    return this.#count;
  }

  /** Why it is not counted, although it is asked for; '' if it is. */
  get fault(): string {
    return this.#fault;
  }

  /** This host itself moves clients away. */
  get isOrdered(): boolean {
    return this.#askers.has('order');
  }

  /** Resolves when it is counted, or is not any more. Never rejects. */
  ask(asker: Asker, isAsked: boolean): Promise<void> {
    if (isAsked) this.#askers.add(asker);
    else this.#askers.delete(asker);
    return this.#turns.run(() => this.#settle()).catch((error: unknown) => this.#fail(error));
  }

  close(): void {
    this.#rounds.close();
    this.#askers.clear();
    void this.#turns.run(() => this.#settle()).catch(() => undefined);
  }

  async #settle(): Promise<void> {
    const { counter, arriving } = this.#options;
    if (this.#askers.size > 0 === this.#isOpen) return;
    if (this.#isOpen) {
      this.#isOpen = false;
      this.#rounds.close();
      this.#count = NOT_COUNTED;
      await counter.close();
      return;
    }
    this.#fault = '';
    await counter.open(arriving());
    this.#isOpen = true;
    await this.#read();
    this.#rounds.start();
  }

  async #read(): Promise<void> {
    if (!this.#isOpen) return;
    this.#count = await this.#options.counter.read();
    this.#options.onCounted();
  }

  #fail(error: unknown): void {
    this.#fault = messageOf(error);
    this.#count = NOT_COUNTED;
  }
}
