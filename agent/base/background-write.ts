// Writes a file in the background: merges changes that come together, runs one write at a time, rests after a write in
// proportion to its length, retries after a failure, and writes once more at the end. Owns its timer.

import { type Clock, systemClock } from './clock.ts';
import type { DiskFile } from './disk-file.ts';
import { messageOf } from './errors.ts';
import { Fault } from './fault.ts';
import { serial } from './serial.ts';

export interface BackgroundWriteOptions {
  /** Writes the state of the moment at which it is called. Errors: any; it is retried. */
  readonly write: () => Promise<void>;
  /** At least this long between a change and its write. */
  readonly delayMs: number;
  /** The rest after a write as a multiple of its length, which limits the share of a processor that writing takes. */
  readonly rest?: number;
  readonly retryMs: number;
  /** Called once while a fault lasts. */
  readonly onFault: (message: string) => void;
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
  /** Milliseconds since the epoch; 0: not yet. */
  #writtenAt = 0;

  constructor(options: BackgroundWriteOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** Why the last write failed; '' if the file is up to date or will be soon. */
  get fault(): string {
    return this.#fault.text;
  }

  /** The file, or the folder, that it writes. */
  file(path: string): DiskFile {
    return { path, writtenAt: this.#writtenAt, fault: this.fault };
  }

  /** Reports a change. */
  soon(): void {
    this.#isDue = true;
    this.#schedule(this.#options.delayMs);
  }

  /** Writes after the write that is under way. Resolves also if the write fails; `fault` is then set. */
  now(): Promise<void> {
    this.#isDue = true;
    return this.#turns.run(() => this.#write());
  }

  /** Resolves when no write is under way. */
  idle(): Promise<void> {
    return this.#turns.idle();
  }

  /** Writes if a write is due; does not retry. */
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
    const { write, rest = 0, retryMs, onFault } = this.#options;
    const began = this.#clock.monotonic();
    try {
      await write();
      this.#writtenAt = this.#clock.wall();
      const ended = this.#clock.monotonic();
      this.#earliest = ended + rest * (ended - began);
      this.#fault.clear();
    } catch (error) {
      this.#isDue = true;
      this.#earliest = this.#clock.monotonic() + retryMs;
      if (this.#fault.set(messageOf(error))) onFault(this.#fault.text);
    }
    if (this.#isDue) this.#reschedule();
  }

  /** Replaces a timer that a change set during the write: it is too early now. */
  #reschedule(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#schedule(this.#options.delayMs);
  }
}
