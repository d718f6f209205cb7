// Decides when to reload: at once for the first request, later requests together and at intervals. The intervals grow
// while reloads continue and while draining workers accumulate, and back off after a failure. One reload at a time.

import { backoffMs } from '../../base/backoff.ts';
import { type Clock, systemClock } from '../../base/clock.ts';
import type { ReloadReason } from '../plan.ts';
import { ReloadPace } from './reload-pace.ts';

export type ReloadCause = ReloadReason | 'repair' | 'adopted' | 'settings' | 'socket-lost' | 'unblocked';

/**
 * `unneeded`: HAProxy already runs the desired state. `failed` is retried with backoff; `again` without, because HAProxy
 * got no order.
 */
export type ReloadResult = 'done' | 'unneeded' | 'failed' | 'again';

export interface ArbiterOptions {
  /** Minimum milliseconds from the end of a reload to the begin of the next. */
  readonly interval: () => number;
  /** Must not reject. */
  readonly reload: (causes: ReadonlySet<ReloadCause>) => Promise<ReloadResult>;
  /** 0 within the budget for draining workers, and 1 more for each worker or share of memory above it. */
  readonly pressure: () => Promise<number>;
  readonly clock?: Clock;
}

const MAX_BACKOFF_MS = 30_000;
const MIN_BACKOFF_MS = 100;

export class ReloadArbiter {
  readonly #options: ArbiterOptions;
  readonly #clock: Clock;
  readonly #pace = new ReloadPace();
  #pending = new Set<ReloadCause>();
  #cancel: (() => void) | undefined;
  #isReloading = false;
  #lastEnd = Number.NEGATIVE_INFINITY;
  #failures = 0;
  #closed = false;

  constructor(options: ArbiterOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
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

  /** The interval has changed. */
  retime(): void {
    if (this.#cancel === undefined || this.#isReloading) return;
    this.#cancel();
    this.#cancel = undefined;
    this.#schedule();
  }

  close(): void {
    this.#closed = true;
    this.#cancel?.();
  }

  #schedule(): void {
    if (this.#closed || this.#isReloading || this.#cancel !== undefined || this.#pending.size === 0) return;
    const interval = this.#options.interval();
    const rest =
      this.#failures === 0 ? this.#pace.rest(this.#lastEnd, interval) : backoff(interval, this.#failures);
    const wait = Math.max(0, this.#lastEnd + rest - this.#clock.monotonic());
    this.#cancel = this.#clock.after(wait, () => void this.#fire());
  }

  async #fire(): Promise<void> {
    this.#isReloading = true;
    const pressure = await this.#options.pressure();
    if (this.#closed) return;
    const interval = this.#options.interval();
    if (pressure > 0 && this.#clock.monotonic() < this.#lastEnd + backoff(interval, pressure)) {
      this.#isReloading = false;
      this.#cancel = this.#clock.after(interval, () => void this.#fire());
      return;
    }
    this.#cancel = undefined;
    const causes = this.#pending;
    this.#pending = new Set();
    const began = this.#clock.monotonic();
    const result = await this.#options.reload(causes);
    if (result === 'done') this.#pace.reloaded(began, this.#clock.monotonic(), interval);
    this.#failures = result === 'failed' ? this.#failures + 1 : 0;
    if (result === 'failed' || result === 'again') for (const cause of causes) this.#pending.add(cause);
    this.#isReloading = false;
    // A request that needed no reload does not delay the next, except that such requests must not follow without a pause.
    this.#lastEnd =
      result === 'unneeded'
        ? Math.max(this.#lastEnd, this.#clock.monotonic() - interval + MIN_BACKOFF_MS)
        : this.#clock.monotonic();
    this.#schedule();
  }
}

function backoff(interval: number, failures: number): number {
  const firstMs = 2 * Math.max(MIN_BACKOFF_MS, interval);
  return backoffMs(failures, { firstMs, mostMs: MAX_BACKOFF_MS });
}
