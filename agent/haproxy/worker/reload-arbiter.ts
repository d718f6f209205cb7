// Decides when to reload: at once for the first request, later requests together and at intervals. The intervals grow
// while reloads continue and while draining workers accumulate, and back off after a failure. A namespace that causes many
// waits for its share, without delay for the others. One reload at a time.

import { backoffMs } from '../../base/backoff.ts';
import { type Clock, systemClock } from '../../base/clock.ts';
import type { ReloadReason } from '../plan.ts';
import { ReloadPace } from './reload-pace.ts';
import { type ReloadShare, ReloadShares, SHARE } from './reload-shares.ts';

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
  /** The share of each namespace. */
  readonly share?: ReloadShare;
  /** All load balancers are of one namespace: nobody else has to be protected, and it has no share; default false. */
  readonly isAlone?: () => boolean;
  readonly clock?: Clock;
}

/** What one namespace waits for. */
interface Request {
  readonly causes: Set<ReloadCause>;
  /** All of it can rest: listeners are removed that no client asks for any more. */
  canRest: boolean;
  readonly first: number;
  last: number;
}

const MAX_BACKOFF_MS = 30_000;
const MIN_BACKOFF_MS = 100;
/** No client waits for the removal of a listener: one that comes so soon after another one is removed with it. */
const REMOVAL_REST_MS = 1_000;
const MOST_REMOVAL_RESTS = 5;
/** The agent itself, which has no share. */
const AGENT = '';

export class ReloadArbiter {
  readonly #options: ArbiterOptions;
  readonly #clock: Clock;
  readonly #pace = new ReloadPace();
  readonly #shares: ReloadShares;
  /** By namespace. */
  #requests = new Map<string, Request>();
  #cancel: (() => void) | undefined;
  /** When the reload begins for which the timer waits. */
  #firesAt = Number.POSITIVE_INFINITY;
  #isReloading = false;
  #lastEnd = Number.NEGATIVE_INFINITY;
  #failures = 0;
  #closed = false;

  constructor(options: ArbiterOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#shares = new ReloadShares(options.share ?? SHARE);
  }

  get pending(): ReadonlySet<ReloadCause> {
    return new Set([...this.#requests.values()].flatMap(({ causes }) => [...causes]));
  }

  get isReloading(): boolean {
    return this.#isReloading;
  }

  /**
   * `namespace`: whose objects cause it; absent for the agent itself. `canRest`: nothing is lost if it comes a second later;
   * default true for the removal of a listener.
   */
  request(cause: ReloadCause, namespace = AGENT, canRest = cause === 'listener-removed'): void {
    const now = this.#clock.monotonic();
    const request = this.#requests.get(namespace) ?? {
      causes: new Set(),
      canRest: true,
      first: now,
      last: now,
    };
    request.canRest &&= canRest;
    // A request that is repeated while it waits is no further one.
    if (!request.causes.has(cause) || cause === 'listener-removed') request.last = now;
    request.causes.add(cause);
    this.#requests.set(namespace, request);
    this.#schedule();
  }

  /** The interval has changed. */
  retime(): void {
    if (this.#cancel === undefined || this.#isReloading) return;
    this.#stopTimer();
    this.#schedule();
  }

  close(): void {
    this.#closed = true;
    this.#cancel?.();
  }

  #stopTimer(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#firesAt = Number.POSITIVE_INFINITY;
  }

  #schedule(): void {
    if (this.#closed || this.#isReloading || this.#requests.size === 0) return;
    const now = this.#clock.monotonic();
    const interval = this.#options.interval();
    const rest =
      this.#failures === 0 ? this.#pace.rest(this.#lastEnd, interval) : backoff(interval, this.#failures);
    const at = Math.max(now, this.#lastEnd + rest, this.#dueAt(now));
    if (at >= this.#firesAt) return;
    this.#stopTimer();
    this.#firesAt = at;
    this.#cancel = this.#clock.after(at - now, () => void this.#fire());
  }

  /** When the first of the requests is. */
  #dueAt(now: number): number {
    return Math.min(
      ...[...this.#requests].map(([namespace, request]) => this.#dueAtOf(namespace, request, now)),
    );
  }

  #dueAtOf(namespace: string, { canRest, first, last }: Request, now: number): number {
    const rested = canRest
      ? Math.min(last, first + (MOST_REMOVAL_RESTS - 1) * REMOVAL_REST_MS) + REMOVAL_REST_MS
      : now;
    if (namespace === AGENT || this.#options.isAlone?.() === true) return rested;
    return Math.max(rested, now + this.#shares.wait(namespace, now));
  }

  async #fire(): Promise<void> {
    const now = this.#clock.monotonic();
    if (this.#dueAt(now) > now) {
      this.#stopTimer();
      return this.#schedule();
    }
    this.#isReloading = true;
    const pressure = await this.#options.pressure();
    if (this.#closed) return;
    const interval = this.#options.interval();
    if (pressure > 0 && this.#clock.monotonic() < this.#lastEnd + backoff(interval, pressure)) {
      this.#isReloading = false;
      this.#firesAt = this.#clock.monotonic() + interval;
      this.#cancel = this.#clock.after(interval, () => void this.#fire());
      return;
    }
    this.#stopTimer();
    const requests = this.#requests;
    const began = this.#clock.monotonic();
    const due = [...requests].filter(([name, request]) => this.#dueAtOf(name, request, began) <= began);
    this.#requests = new Map();
    const result = await this.#options.reload(
      new Set([...requests.values()].flatMap(({ causes }) => [...causes])),
    );
    if (result === 'done') {
      this.#pace.reloaded(began, this.#clock.monotonic(), interval);
      for (const [name] of due) if (name !== AGENT) this.#shares.use(name, began);
    }
    this.#failures = result === 'failed' ? this.#failures + 1 : 0;
    if (result === 'failed' || result === 'again') this.#keep(requests);
    this.#isReloading = false;
    // A request that needed no reload does not delay the next, except that such requests must not follow without a pause.
    this.#lastEnd =
      result === 'unneeded'
        ? Math.max(this.#lastEnd, this.#clock.monotonic() - interval + MIN_BACKOFF_MS)
        : this.#clock.monotonic();
    this.#schedule();
  }

  #keep(requests: ReadonlyMap<string, Request>): void {
    for (const [namespace, { causes, canRest, first, last }] of requests) {
      const since = this.#requests.get(namespace);
      this.#requests.set(namespace, {
        causes: new Set([...causes, ...(since?.causes ?? [])]),
        canRest: canRest && (since?.canRest ?? true),
        first,
        last: since?.last ?? last,
      });
    }
  }
}

function backoff(interval: number, failures: number): number {
  const firstMs = 2 * Math.max(MIN_BACKOFF_MS, interval);
  return backoffMs(failures, { firstMs, mostMs: MAX_BACKOFF_MS });
}
