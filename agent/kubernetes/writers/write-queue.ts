// Decides when which object is written to the cluster: each key once however often it was added, never two writes of one
// key at a time, a limited number of writes per second, and longer and longer waits after failures. Writes nothing while
// it is paused. Logs each new fault once. Owns one timer.

import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { Fault } from '../../base/fault.ts';
import type { Log } from '../../host/log.ts';
import { apiBackoffMs, refusalText, waitAsked } from '../api/api-answer.ts';
import type { ApiResponse, KubernetesApi } from '../api/kubernetes-api.ts';

/** What metrics count. `dropped`: a retry would not help. */
export type WriteResult = 'done' | 'conflict' | 'failed' | 'dropped';

export interface WriteOutcome {
  /** `conflict`: the object has changed, so it is written again at once. */
  readonly result: WriteResult | 'unchanged';
  /** Why the API server has not taken it; default ''. */
  readonly fault?: string;
  /** False: the next write of the key need not wait for the spacing; default true. */
  readonly isSpaced?: boolean;
  /** Until the retry after a failure; default a backoff. */
  readonly waitMs?: number | undefined;
}

/** What every writer needs. */
export interface WriterOptions {
  readonly api: KubernetesApi;
  readonly clock: Clock;
  readonly log: Log;
  /** Read at each write, besides lead(): by the clock, so that no write is sent too late. */
  readonly isLeader: () => boolean;
  /** 0 to 1, so that two agents that failed together do not retry together. */
  readonly random?: () => number;
}

export interface WriteQueueOptions extends Pick<WriterOptions, 'clock' | 'log' | 'random'> {
  /** Whatever it throws is a failure. */
  readonly write: (key: string) => Promise<WriteOutcome>;
  /** Called before a write: milliseconds to wait with the key, 0 to write it now, Infinity if there is nothing to write. */
  readonly check?: (key: string) => number;
  /** What the log says before the reason of a fault: `Cannot write the status of a Service`. */
  readonly faultTitle: string;
  readonly onResult?: (result: WriteResult) => void;
  /** Writes per second in the long run, and how many at once after a quiet time. */
  readonly rate?: number;
  readonly burst?: number;
  /** Between two writes of one key. */
  readonly spacingMs?: number;
}

/** Enough for thousands of new Services within seconds. The API server itself slows down a client that asks too much. */
const RATE = 500;
const BURST = 2_000;
/** Writes under way at one time. */
const CONCURRENCY = 8;
/** After so many conflicts in a row the key is written again at once; more count as failures. */
const MAX_CONFLICTS = 5;
/** So many keys are checked in one turn of the event loop. */
const MAX_CHECKS = 64;

interface Entry {
  /** When it may be written, by the monotonic clock. */
  due: number;
  /** Added during its write, which is out of date. */
  addedSince: boolean;
  isWriting: boolean;
  failures: number;
  conflicts: number;
  /** No write before this. */
  notBefore: number;
}

/** The state of a key that has just been added. */
const NEW = { addedSince: false, isWriting: false, failures: 0, conflicts: 0 };

export class WriteQueue {
  readonly #options: WriteQueueOptions;
  readonly #rate: number;
  readonly #burst: number;
  readonly #spacingMs: number;
  readonly #fault = new Fault();
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

  /** Paused until `lead(true)`. */
  constructor(options: WriteQueueOptions) {
    this.#options = options;
    this.#rate = options.rate ?? RATE;
    this.#burst = options.burst ?? BURST;
    this.#spacingMs = options.spacingMs ?? 0;
    this.#tokens = this.#burst;
    this.#tokensAt = this.#now();
  }

  /** Keys that wait or are being written. */
  get size(): number {
    return this.#entries.size;
  }

  /** Why the last write failed, '' if it did not. */
  get fault(): string {
    return this.#fault.text;
  }

  /** Writes the key as soon as possible, or after `delayMs`; the earlier of two times counts. */
  add(key: string, delayMs = 0): void {
    if (this.#isClosed) return;
    const due = this.#now() + delayMs;
    const entry = this.#entries.get(key);
    if (entry === undefined) {
      const notBefore = this.#spaced.get(key) ?? 0;
      this.#entries.set(key, { ...NEW, due, notBefore });
    } else if (entry.isWriting) {
      entry.due = entry.addedSince ? Math.min(entry.due, due) : due;
      entry.addedSince = true;
    } else {
      entry.due = Math.min(entry.due, due);
    }
    this.#turn();
  }

  /** Removes the key; a write that is under way continues. */
  delete(key: string): void {
    const entry = this.#entries.get(key);
    if (entry?.isWriting) entry.addedSince = false;
    else this.#entries.delete(key);
  }

  /** Pauses while this agent does not lead. Failures before the pause no longer count. */
  lead(isLeader: boolean): void {
    this.#fault.clear();
    this.#isPaused = !isLeader;
    for (const entry of this.#entries.values()) {
      entry.failures = 0;
      entry.notBefore = 0;
    }
    this.#turn();
  }

  /** Begins no more writes; resolves when those under way have ended. */
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
    const { check, clock } = this.#options;
    const now = this.#now();
    this.#tokens = Math.min(this.#burst, this.#tokens + ((now - this.#tokensAt) * this.#rate) / 1000);
    this.#tokensAt = now;
    let next = Number.POSITIVE_INFINITY;
    let checks = 0;
    for (const [key, entry] of this.#entries) {
      if (this.#writing >= CONCURRENCY) return;
      if (entry.isWriting) continue;
      const at = Math.max(entry.due, entry.notBefore);
      if (at > now) {
        next = Math.min(next, at);
        continue;
      }
      if (this.#tokens < 1 || checks === MAX_CHECKS) {
        next = this.#tokens < 1 ? now + ((1 - this.#tokens) * 1000) / this.#rate : now;
        break;
      }
      checks++;
      const waitMs = check?.(key) ?? 0;
      if (waitMs === Number.POSITIVE_INFINITY) this.#entries.delete(key);
      else if (waitMs > 0) {
        entry.due = now + waitMs;
        next = Math.min(next, entry.due);
      } else {
        this.#tokens -= 1;
        void this.#write(key, entry);
      }
    }
    if (next < Number.POSITIVE_INFINITY)
      this.#cancelTimer = clock.after(Math.ceil(next - now), () => this.#turn());
  }

  async #write(key: string, entry: Entry): Promise<void> {
    this.#writing++;
    entry.isWriting = true;
    entry.addedSince = false;
    let outcome: WriteOutcome;
    try {
      outcome = await this.#options.write(key);
    } catch (error) {
      outcome = { result: 'failed', fault: messageOf(error) };
    }
    this.#writing--;
    entry.isWriting = false;
    this.#report(outcome);
    this.#settle(key, entry, outcome);
    if (this.#writing === 0) for (const resolve of this.#idle.splice(0)) resolve();
    this.#turn();
  }

  #report({ result, fault = '' }: WriteOutcome): void {
    const { faultTitle, log, onResult } = this.#options;
    if (result === 'unchanged') return;
    onResult?.(result);
    if (result !== 'conflict' && this.#fault.set(fault) && fault !== '') log.warn(`${faultTitle}: ${fault}`);
  }

  #settle(key: string, entry: Entry, { result, waitMs, isSpaced = true }: WriteOutcome): void {
    const now = this.#now();
    entry.conflicts = result === 'conflict' ? entry.conflicts + 1 : 0;
    if (result === 'conflict' && entry.conflicts <= MAX_CONFLICTS) {
      entry.due = now;
    } else if (result === 'conflict' || result === 'failed') {
      entry.failures++;
      entry.due = now;
      entry.notBefore = now + (waitMs ?? apiBackoffMs(entry.failures, this.#options.random ?? Math.random));
    } else {
      entry.failures = 0;
      entry.notBefore = isSpaced ? now + this.#spacingMs : now;
      if (isSpaced) this.#space(key, entry.notBefore, now);
      if (!entry.addedSince) this.#entries.delete(key);
    }
  }

  #space(key: string, until: number, now: number): void {
    if (this.#spacingMs === 0) return;
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

/** The outcome of an answer that is neither success nor conflict. */
export function failedBy(response: ApiResponse): WriteOutcome {
  return { result: 'failed', fault: refusalText(response), waitMs: waitAsked(response) };
}
