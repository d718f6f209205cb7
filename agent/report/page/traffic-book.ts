// The traffic of each load balancer, from the rounds in which the dataplane is read for the metrics. While a page is open it
// has rounds made if there are none for scrapes. Without both it does nothing.

import { type Clock, systemClock } from '../../base/clock.ts';
import { Slice } from '../../base/slice.ts';
import type { Dataplane } from '../../dataplane/dataplane.ts';
import type { OwnerKey } from '../../model/load-balancer.ts';
import { ownerOfListener } from '../../model/names.ts';
import { BIN_MS, BINS, type Traffic, TrafficHistory, type TrafficValues } from './traffic-history.ts';

/** From the end of a round to the begin of the next one, while a page is open. */
const REST_MS = 5_000;
/** The traffic of a shorter time is not a rate. */
const MIN_INTERVAL_MS = 1_000;
/** Older traffic is not shown. */
const MAX_AGE_MS = BINS * BIN_MS;

/** A listener when it was read last. */
interface Known {
  readonly key: OwnerKey;
  total: number;
  readAt: number;
}

const UNKNOWN: Traffic = { rate: Number.NaN, open: Number.NaN };

export class TrafficBook {
  readonly #dataplane: Pick<Dataplane, 'families' | 'traffic'>;
  readonly #clock: Clock;
  readonly #history = new TrafficHistory();
  #now: ReadonlyMap<OwnerKey, Traffic> = new Map();
  /** By listener. */
  readonly #known = new Map<string, Known>();
  /** The end of the last round. */
  #endedAt = Number.NEGATIVE_INFINITY;
  #isReading = false;

  constructor(dataplane: Pick<Dataplane, 'families' | 'traffic'>, clock: Clock = systemClock) {
    this.#dataplane = dataplane;
    this.#clock = clock;
  }

  /** Called while a page is open: begins a round unless the last one is recent. */
  want(): void {
    if (this.#isReading || this.#clock.monotonic() - this.#endedAt < REST_MS) return;
    this.#isReading = true;
    this.#dataplane
      .families({ isAwaited: false })
      .then(() => this.record())
      // The page asks again.
      .catch(() => undefined)
      .finally(() => {
        this.#isReading = false;
      });
  }

  /** Called after a round. */
  async record(): Promise<void> {
    const now = this.#clock.monotonic();
    const seconds = (now - this.#endedAt) / 1_000;
    if (seconds * 1_000 < MIN_INTERVAL_MS) return;
    this.#endedAt = now;
    if (seconds * 1_000 > MAX_AGE_MS) this.#known.clear();
    const traffic = new Map<OwnerKey, { rate: number; open: number }>();
    const slice = new Slice();
    for (const { name, total, open } of this.#dataplane.traffic()) {
      const known = this.#known.get(name) ?? { key: ownerOfListener(name), total: Number.NaN, readAt: now };
      if (Number.isNaN(known.total)) this.#known.set(name, known);
      let sum = traffic.get(known.key);
      if (sum === undefined) {
        sum = { ...UNKNOWN };
        traffic.set(known.key, sum);
      }
      sum.open = plus(sum.open, open);
      sum.rate = plus(sum.rate, (total - known.total) / seconds);
      known.total = total;
      known.readAt = now;
      if (slice.isOver) await slice.breathe();
    }
    for (const [name, { readAt }] of this.#known) if (readAt !== now) this.#known.delete(name);
    this.#now = traffic;
    this.#history.record(now, traffic);
  }

  of(key: OwnerKey): Traffic {
    return this.#isOld ? UNKNOWN : (this.#now.get(key) ?? UNKNOWN);
  }

  history(key: OwnerKey): TrafficValues {
    return this.#isOld ? { rates: [], open: [] } : this.#history.of(key);
  }

  get #isOld(): boolean {
    return this.#clock.monotonic() - this.#endedAt > MAX_AGE_MS;
  }
}

/** NaN only if both are unknown. */
function plus(sum: number, value: number): number {
  if (Number.isNaN(value)) return sum;
  return Number.isNaN(sum) ? value : sum + value;
}
