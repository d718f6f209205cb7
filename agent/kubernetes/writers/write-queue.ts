// Decides when to write about which key: each key once however often it was added, never two writes of one key at a
// time, at most so many a second in all, later and later after failures. Nothing is written while it is paused.
// Owns one timer; what a write is, and what it takes to write it, comes in as a function.

import type { Clock } from '../../base/clock.ts';
import { apiBackoffMs } from '../api/api-answer.ts';

/** `done`; `again`: at once, something moved meanwhile; `later`: it failed, after `wait` milliseconds or a back-off. */
export type WriteOutcome = 'done' | 'again' | { readonly later: true; readonly wait?: number };

export interface WriteQueueOptions {
  /** One that throws counts as `later`. */
  readonly write: (key: string) => Promise<WriteOutcome>;
  /** Asked before a key takes its turn: milliseconds to wait with it, 0 to write it now, Infinity for nothing to do. */
  readonly check?: (key: string) => number;
  readonly clock: Clock;
  /** Writes a second in the long run, and how many may come at once after a quiet time. */
  readonly rate?: number;
  readonly burst?: number;
  /** Writes under way at one time. */
  readonly concurrency?: number;
  /** Milliseconds between two writes of one key. */
  readonly spacing?: number;
  /** From 0 to 1, so that two agents that failed together do not come back together. */
  readonly random?: () => number;
}

/** As many `again` in a row are taken at once; what comes after them is a failure. */
const AGAIN = 5;
/** So many keys are checked in one go; then others have their turn. */
const CHECKS = 64;

interface Entry {
  /** When it may be written, by the monotonic clock. */
  due: number;
  /** Added while it was being written: what was written is old. */
  addedSince: boolean;
  isWriting: boolean;
  failures: number;
  again: number;
  /** No write before this. */
  notBefore: number;
}

export class WriteQueue {
  readonly #options: Required<WriteQueueOptions>;
  /** Keys that wait or are being written. */
  readonly #entries = new Map<string, Entry>();
  /** Key → when the spacing after its last write is over. */
  readonly #spaced = new Map<string, number>();
  #tokens: number;
  #tokensAt: number;
  #writing = 0;
  #isPaused = true;
  #isClosed = false;
  #cancelTimer: (() => void) | undefined;
  #idle: (() => void)[] = [];

  /** Paused until resume(). */
  constructor(options: WriteQueueOptions) {
    this.#options = {
      check: () => 0,
      rate: 20,
      burst: 50,
      concurrency: 4,
      spacing: 0,
      random: Math.random,
      ...options,
    };
    this.#tokens = this.#options.burst;
    this.#tokensAt = options.clock.monotonic();
  }

  /** Keys that wait or are being written. */
  get size(): number {
    return this.#entries.size;
  }

  /** Writes the key as soon as may be, or after `delay` milliseconds; the earlier of two times counts. */
  add(key: string, delay = 0): void {
    if (this.#isClosed) return;
    const due = this.#now() + delay;
    const entry = this.#entries.get(key);
    if (entry === undefined) {
      const notBefore = this.#spaced.get(key) ?? 0;
      this.#entries.set(key, { due, addedSince: false, isWriting: false, failures: 0, again: 0, notBefore });
    } else if (entry.isWriting) {
      entry.due = entry.addedSince ? Math.min(entry.due, due) : due;
      entry.addedSince = true;
    } else {
      entry.due = Math.min(entry.due, due);
    }
    this.#turn();
  }

  /** Forgets the key; a write that is under way ends by itself. */
  delete(key: string): void {
    const entry = this.#entries.get(key);
    if (entry?.isWriting) entry.addedSince = false;
    else this.#entries.delete(key);
  }

  pause(): void {
    this.#isPaused = true;
    this.#cancelTimer?.();
  }

  /** Failures that were before the pause no longer count. */
  resume(): void {
    this.#isPaused = false;
    for (const entry of this.#entries.values()) {
      entry.failures = 0;
      entry.notBefore = 0;
    }
    this.#turn();
  }

  /** Writes nothing more; resolves when what is under way has ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelTimer?.();
    if (this.#writing === 0) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #turn(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    if (this.#isPaused || this.#isClosed) return;
    const now = this.#now();
    this.#refill(now);
    let next = Number.POSITIVE_INFINITY;
    let checks = 0;
    for (const [key, entry] of this.#entries) {
      if (this.#writing >= this.#options.concurrency) return;
      if (entry.isWriting) continue;
      const at = Math.max(entry.due, entry.notBefore);
      if (at > now) {
        next = Math.min(next, at);
        continue;
      }
      if (this.#tokens < 1 || checks === CHECKS) {
        next = this.#tokens < 1 ? now + ((1 - this.#tokens) * 1000) / this.#options.rate : now;
        break;
      }
      checks++;
      const wait = this.#options.check(key);
      if (wait === Number.POSITIVE_INFINITY) this.#entries.delete(key);
      else if (wait > 0) {
        entry.due = now + wait;
        next = Math.min(next, entry.due);
      } else {
        this.#tokens -= 1;
        void this.#write(key, entry);
      }
    }
    if (next < Number.POSITIVE_INFINITY)
      this.#cancelTimer = this.#options.clock.after(Math.ceil(next - now), () => this.#turn());
  }

  #refill(now: number): void {
    const { rate, burst } = this.#options;
    this.#tokens = Math.min(burst, this.#tokens + ((now - this.#tokensAt) * rate) / 1000);
    this.#tokensAt = now;
  }

  async #write(key: string, entry: Entry): Promise<void> {
    this.#writing++;
    entry.isWriting = true;
    entry.addedSince = false;
    let outcome: WriteOutcome;
    try {
      outcome = await this.#options.write(key);
    } catch {
      outcome = { later: true };
    }
    this.#writing--;
    entry.isWriting = false;
    this.#settle(key, entry, outcome);
    if (this.#writing === 0) for (const resolve of this.#idle.splice(0)) resolve();
    this.#turn();
  }

  #settle(key: string, entry: Entry, outcome: WriteOutcome): void {
    const now = this.#now();
    if (outcome === 'done') {
      entry.failures = 0;
      entry.again = 0;
      entry.notBefore = now + this.#options.spacing;
      this.#space(key, entry.notBefore, now);
      if (!entry.addedSince) this.#entries.delete(key);
      return;
    }
    entry.again = outcome === 'again' ? entry.again + 1 : 0;
    if (outcome === 'again' && entry.again <= AGAIN) {
      entry.due = now;
      return;
    }
    const wait = outcome === 'again' ? undefined : outcome.wait;
    entry.failures++;
    entry.due = now;
    entry.notBefore = now + (wait ?? apiBackoffMs(entry.failures, this.#options.random));
  }

  #space(key: string, until: number, now: number): void {
    if (this.#options.spacing === 0) return;
    this.#spaced.delete(key);
    this.#spaced.set(key, until);
    for (const [old, end] of this.#spaced) {
      if (end > now) break;
      this.#spaced.delete(old);
    }
  }

  #now(): number {
    return this.#options.clock.monotonic();
  }
}
