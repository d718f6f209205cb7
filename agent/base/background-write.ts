// Writes a file in the background: changes that come together are written once, one write at a time, a rest after each
// write that grows with its length, retries after a failure, and a last write at the end. Owns its timer.

import { type Clock, systemClock } from './clock.ts';
import { messageOf } from './errors.ts';
import { Fault } from './fault.ts';
import { serial } from './serial.ts';

export interface BackgroundWriteOptions {
  /** Writes what is there by then. Errors: any; it is retried. */
  readonly write: () => Promise<void>;
  /** From a change to its write, at least. */
  readonly delayMs: number;
  /** The rest after a write, in times of its length: a share of a processor that writing may take. */
  readonly rest?: number;
  readonly retryMs: number;
  /** Called once for a fault that lasts. */
  readonly onFault: (message: string) => void;
  readonly onRecovered?: () => void;
  readonly clock?: Clock;
}

export class BackgroundWrite {
  readonly #options: BackgroundWriteOptions;
  readonly #clock: Clock;
  readonly #turns = serial();
  readonly #fault = new Fault();
  #cancel: (() => void) | undefined;
  #isDue = false;
  #earliest = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  constructor(options: BackgroundWriteOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** Why the file is older than what should be in it; '' where it is not, or soon will not be. */
  get fault(): string {
    return this.#fault.text;
  }

  /** Something has changed. */
  soon(): void {
    this.#isDue = true;
    this.#schedule(this.#options.delayMs);
  }

  /** Writes, after a write that is under way. Resolves also if the write failed; `fault` says so. */
  now(): Promise<void> {
    this.#isDue = true;
    return this.#turns.run(() => this.#write());
  }

  /** Resolves when no write is under way. */
  idle(): Promise<void> {
    return this.#turns.idle();
  }

  /** Writes what was still due; no retry follows. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel?.();
    await this.#turns.run(() => this.#write());
  }

  #schedule(delayMs: number): void {
    if (this.#isClosed || this.#cancel !== undefined) return;
    const wait = Math.max(delayMs, this.#earliest - this.#clock.monotonic());
    this.#cancel = this.#clock.after(wait, () => void this.#turns.run(() => this.#write()));
  }

  async #write(): Promise<void> {
    this.#cancel?.();
    this.#cancel = undefined;
    if (!this.#isDue) return;
    this.#isDue = false;
    const { write, rest = 0, retryMs, onFault, onRecovered } = this.#options;
    const began = this.#clock.monotonic();
    try {
      await write();
      const ended = this.#clock.monotonic();
      this.#earliest = ended + rest * (ended - began);
      if (this.#fault.clear()) onRecovered?.();
    } catch (error) {
      this.#isDue = true;
      this.#earliest = this.#clock.monotonic() + retryMs;
      if (this.#fault.set(messageOf(error))) onFault(this.#fault.text);
    }
    if (this.#isDue) this.#reschedule();
  }

  /** A change during the write may have set a timer that is too early by now. */
  #reschedule(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#schedule(this.#options.delayMs);
  }
}
