// Decides when to reload: the first request at once, further ones together and spaced, spaced further where they go on
// and on, while old workers (or their memory) pile up, and after a failure with growing patience. Never two at a time.

import type { ReloadReason } from '../plan.ts';
import { ReloadPace } from './reload-pace.ts';

export type ReloadCause = ReloadReason | 'repair' | 'adopted' | 'settings' | 'socket-lost' | 'unblocked';

/**
 * Whether it was done; `unneeded`: HAProxy runs what is wanted already. After false it is tried again with growing
 * patience, after `soon` without, because HAProxy was not even asked.
 */
export type ReloadResult = boolean | 'unneeded' | 'soon';

export interface ArbiterOptions {
  /** Milliseconds, the least from the end of a reload to the next one. */
  readonly interval: () => number;
  /** Does the reload. Must not throw. */
  readonly reload: (causes: ReadonlySet<ReloadCause>) => Promise<ReloadResult>;
  /** How many times the budget of old workers is used up: 0 within it, 1 for each worker or share above. */
  readonly pressure: () => Promise<number>;
  readonly now?: () => number;
}

const MOST_PATIENCE = 30_000;
/** Milliseconds after a request that came to nothing. */
const LEAST = 100;

export class ReloadArbiter {
  readonly #options: ArbiterOptions;
  readonly #now: () => number;
  readonly #pace = new ReloadPace();
  #pending = new Set<ReloadCause>();
  #timer: NodeJS.Timeout | undefined;
  #isReloading = false;
  #lastEnd = Number.NEGATIVE_INFINITY;
  #failures = 0;
  #closed = false;

  constructor(options: ArbiterOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  get pending(): ReadonlySet<ReloadCause> {
    return this.#pending;
  }

  get isReloading(): boolean {
    return this.#isReloading;
  }

  request(cause: ReloadCause): void {
    this.#pending.add(cause);
    this.#schedule();
  }

  /** The interval may be another one: nobody waits for the end of the old one. */
  retime(): void {
    if (this.#timer === undefined || this.#isReloading) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#schedule();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  #schedule(): void {
    if (this.#closed || this.#isReloading || this.#timer !== undefined || this.#pending.size === 0) return;
    const interval = this.#options.interval();
    const patience =
      this.#failures === 0 ? this.#pace.rest(this.#lastEnd, interval) : backOff(interval, this.#failures);
    const wait = Math.max(0, this.#lastEnd + patience - this.#now());
    this.#timer = setTimeout(() => void this.#fire(), wait);
  }

  async #fire(): Promise<void> {
    this.#isReloading = true;
    const pressure = await this.#options.pressure();
    if (this.#closed) return;
    const interval = this.#options.interval();
    if (pressure > 0 && this.#now() < this.#lastEnd + backOff(interval, pressure)) {
      this.#isReloading = false;
      this.#timer = setTimeout(() => void this.#fire(), interval);
      return;
    }
    this.#timer = undefined;
    const causes = this.#pending;
    this.#pending = new Set();
    const began = this.#now();
    const result = await this.#options.reload(causes);
    if (result === true) this.#pace.reloaded(began, this.#now(), interval);
    this.#failures = result === false ? this.#failures + 1 : 0;
    const isOver = result === true || result === 'unneeded';
    if (!isOver) for (const cause of causes) this.#pending.add(cause);
    this.#isReloading = false;
    // What cost HAProxy nothing puts nobody off, but for those that would come to nothing without a pause.
    this.#lastEnd =
      result === 'unneeded' ? Math.max(this.#lastEnd, this.#now() - interval + LEAST) : this.#now();
    this.#schedule();
  }
}

function backOff(interval: number, steps: number): number {
  return Math.min(MOST_PATIENCE, Math.max(100, interval) * 2 ** Math.min(steps, 10));
}
