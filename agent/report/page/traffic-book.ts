// The traffic of each load balancer, and of all together, from the rounds in which the dataplane is read for the metrics.
// While a page is open it has rounds made if there are none for scrapes. Without both it does nothing.
// Why: docs/design/decisions/0053-traffic-on-the-page.md

import { type Clock, systemClock } from '../../base/clock.ts';
import { Slice } from '../../base/slice.ts';
import type { Meter } from '../../dataplane/meter.ts';
import type { ListenerTraffic } from '../../dataplane/status.ts';
import type { OwnerKey } from '../../model/load-balancer.ts';
import { ownerOf, ownerOfListener } from '../../model/names.ts';
import {
  BIN_MS,
  BINS,
  type Measure,
  NO_TRAFFIC_VALUES,
  recordOf,
  type Traffic,
  TrafficHistory,
  type TrafficValues,
} from './traffic-history.ts';

/** From the end of a round to the begin of the next one, while a page is open. */
const REST_MS = 5_000;
/** The traffic of a shorter time is not a rate. */
const MIN_INTERVAL_MS = 1_000;
/** Older traffic is not shown. */
const MAX_AGE_MS = BINS * BIN_MS;

/** The key of all load balancers together. */
const ALL = '';

/** Counters of a listener, by what they are per second. */
const COUNTERS = {
  rate: 'total',
  bytesIn: 'bytesIn',
  bytesOut: 'bytesOut',
  errors: 'errors',
  retries: 'retries',
} as const satisfies Partial<Record<Measure, keyof ListenerTraffic>>;

type Counter = keyof typeof COUNTERS;

const COUNTER_ENTRIES = Object.entries(COUNTERS) as readonly (readonly [
  Counter,
  (typeof COUNTERS)[Counter],
])[];

/** A listener when it was read last. */
interface Known {
  readonly key: OwnerKey;
  last: ListenerTraffic;
  readAt: number;
}

/** A sum in the making; `weight`: of the latency, which is a mean by new connections. */
type Sum = Record<Measure, number> & { weight: number };

const UNKNOWN: Traffic = recordOf(() => Number.NaN);

export class TrafficBook {
  readonly #dataplane: Pick<Meter, 'families' | 'traffic'>;
  readonly #clock: Clock;
  readonly #history = new TrafficHistory();
  #now: ReadonlyMap<OwnerKey, Traffic> = new Map();
  /** By listener. */
  readonly #known = new Map<string, Known>();
  /** The end of the last round. */
  #endedAt = Number.NEGATIVE_INFINITY;
  #isReading = false;

  constructor(dataplane: Pick<Meter, 'families' | 'traffic'>, clock: Clock = systemClock) {
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
    const traffic = new Map<OwnerKey, Sum>([[ALL, newSum()]]);
    const slice = new Slice();
    for (const listener of this.#dataplane.traffic()) {
      const known = this.#known.get(listener.name);
      const key = known?.key ?? ownerOfListener(listener.name);
      const sum = traffic.get(key) ?? newSum();
      traffic.set(key, sum);
      add(sum, listener, known?.last, seconds);
      const all = traffic.get(ALL) as Sum;
      if (ownerOf(key).kind === 'Pool') addPool(all, listener, known?.last, seconds);
      else add(all, listener, known?.last, seconds);
      if (known === undefined) this.#known.set(listener.name, { key, last: listener, readAt: now });
      else {
        known.last = listener;
        known.readAt = now;
      }
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
    return this.#isOld ? NO_TRAFFIC_VALUES : this.#history.of(key);
  }

  /** All load balancers together. */
  get historyOfAll(): TrafficValues {
    return this.history(ALL);
  }

  get #isOld(): boolean {
    return this.#clock.monotonic() - this.#endedAt > MAX_AGE_MS;
  }
}

function newSum(): Sum {
  return { ...UNKNOWN, weight: 0 };
}

/** Adds a listener to a sum. */
function add(sum: Sum, now: ListenerTraffic, last: ListenerTraffic | undefined, seconds: number): void {
  for (const [measure, counter] of COUNTER_ENTRIES)
    sum[measure] = plus(sum[measure], perSecond(now, last, counter, seconds));
  sum.open = plus(sum.open, now.open);
  addLatency(sum, now, last, seconds);
}

/** Adds a pool of routes to the sum of all: its clients are counted at the listeners of its Gateways and Ingresses. */
function addPool(sum: Sum, now: ListenerTraffic, last: ListenerTraffic | undefined, seconds: number): void {
  sum.retries = plus(sum.retries, perSecond(now, last, 'retries', seconds));
  addLatency(sum, now, last, seconds);
}

/** A mean by new connections; without any a listener counts a little, so that one alone has a latency. */
function addLatency(
  sum: Sum,
  now: ListenerTraffic,
  last: ListenerTraffic | undefined,
  seconds: number,
): void {
  if (Number.isNaN(now.latency)) return;
  const weight = Math.max(0.001, perSecond(now, last, 'total', seconds) || 0);
  sum.latency = ((sum.latency || 0) * sum.weight + now.latency * weight) / (sum.weight + weight);
  sum.weight += weight;
}

/** NaN in the first round. */
function perSecond(
  now: ListenerTraffic,
  last: ListenerTraffic | undefined,
  counter: (typeof COUNTERS)[Counter],
  seconds: number,
): number {
  return last === undefined ? Number.NaN : (now[counter] - last[counter]) / seconds;
}

/** NaN only if both are unknown. */
function plus(sum: number, value: number): number {
  if (Number.isNaN(value)) return sum;
  return Number.isNaN(sum) ? value : sum + value;
}
