// The traffic of load balancers in the last two minutes, for a page that shows them. Has a value for each five seconds, in a
// fixed piece of memory: a load balancer has its part of it from its first connection until it was quiet for two minutes.

import type { OwnerKey } from '../../model/load-balancer.ts';

/** What is measured, per second except `open` and `latency`, which are amounts; milliseconds for `latency`. */
export const MEASURES = ['rate', 'open', 'bytesIn', 'bytesOut', 'errors', 'retries', 'latency'] as const;

export type Measure = (typeof MEASURES)[number];

/** The traffic of one load balancer at one moment; NaN if it is unknown. */
export type Traffic = Readonly<Record<Measure, number>>;

/** Values of five seconds each, the newest last, NaN for an unknown one; empty if nothing is known. */
export type TrafficValues = Readonly<Record<Measure, readonly number[]>>;

export const NO_TRAFFIC_VALUES = recordOf((): readonly number[] => []);

export const BIN_MS = 5_000;
export const BINS = 24;
/** Load balancers with a slot. */
export const MAX_SLOTS = 5_000;
/** Numbers of one slot: a value of each measure for each bin. */
const SLOT_SIZE = MEASURES.length * BINS;

interface Slot {
  readonly offset: number;
  /** The last bin with traffic. */
  busyAt: number;
}

export class TrafficHistory {
  readonly #slots = new Map<OwnerKey, Slot>();
  readonly #free: number[] = [];
  /** By slot, then by bin; made with the first slot. */
  #values: Float32Array | undefined;
  /** The number of the newest bin, from the begin of the clock. */
  #bin = Number.NEGATIVE_INFINITY;
  /** How many bins up to the newest one have values. */
  #known = 0;
  /** The bin of a first round, which knows no rate. */
  #firstBin = Number.NEGATIVE_INFINITY;

  /** `now`: monotonic milliseconds. The values count from the last call until now. */
  record(now: number, traffic: ReadonlyMap<OwnerKey, Traffic>): void {
    const bin = Math.floor(now / BIN_MS);
    const passed = bin - this.#bin;
    const first = passed > BINS ? bin : this.#bin + Math.min(1, passed);
    this.#known = Math.min(BINS, passed > BINS ? 1 : this.#known + passed);
    this.#bin = bin;
    if (isFirst(traffic)) this.#firstBin = bin;
    else if (this.#firstBin === bin) this.#firstBin = Number.NEGATIVE_INFINITY;
    for (const [key, { rate, open }] of traffic) if (rate > 0 || open > 0) this.#slot(key, bin);
    for (const [key, slot] of this.#slots) {
      const now = traffic.get(key) ?? QUIET;
      for (let each = first; each <= bin; each++) this.#put(offsetOf(slot, each), now, passed === 0);
      if (bin - slot.busyAt < BINS) continue;
      this.#slots.delete(key);
      this.#free.push(slot.offset);
    }
  }

  of(key: OwnerKey): TrafficValues {
    const slot = this.#slots.get(key);
    const values = this.#values;
    if (slot === undefined && this.#slots.size === MAX_SLOTS) return NO_TRAFFIC_VALUES;
    const bins = Array.from({ length: this.#known }, (_, at) => this.#bin - this.#known + 1 + at);
    return recordOf((measure, at) =>
      bins.map((bin) =>
        slot === undefined || values === undefined
          ? (bin === this.#firstBin ? FIRST : QUIET)[measure]
          : (values[offsetOf(slot, bin) + at] as number),
      ),
    );
  }

  #slot(key: OwnerKey, bin: number): void {
    const known = this.#slots.get(key);
    if (known !== undefined) {
      known.busyAt = bin;
      return;
    }
    if (this.#slots.size === MAX_SLOTS) return;
    this.#values ??= new Float32Array(MAX_SLOTS * SLOT_SIZE);
    const offset = this.#free.pop() ?? this.#slots.size * SLOT_SIZE;
    for (let bin = 0; bin < BINS; bin++) this.#put(offset + bin * MEASURES.length, QUIET, false);
    this.#slots.set(key, { offset, busyAt: bin });
  }

  /** `isMore`: another round has ended in the same bin, which keeps the greater numbers. */
  #put(offset: number, traffic: Traffic, isMore: boolean): void {
    const values = this.#values;
    if (values === undefined) return;
    for (const [at, measure] of MEASURES.entries()) {
      const [before, now] = [values[offset + at] as number, traffic[measure]];
      values[offset + at] = isMore && before > now ? before : now;
    }
  }
}

/** Values that are made alike for each measure. */
export function recordOf<Value>(make: (measure: Measure, at: number) => Value): Record<Measure, Value> {
  return Object.fromEntries(MEASURES.map((measure, at) => [measure, make(measure, at)])) as Record<
    Measure,
    Value
  >;
}

/** Without connections nothing has a latency. */
const QUIET: Traffic = recordOf((measure) => (measure === 'latency' ? Number.NaN : 0));

/** True if nothing was counted twice yet. */
function isFirst(traffic: ReadonlyMap<OwnerKey, Traffic>): boolean {
  for (const { rate } of traffic.values()) if (!Number.isNaN(rate)) return false;
  return traffic.size > 0;
}

/** A load balancer without connections, before anything was counted twice. */
const FIRST: Traffic = recordOf((measure) => (measure === 'open' ? 0 : Number.NaN));

function offsetOf({ offset }: Slot, bin: number): number {
  return offset + MEASURES.length * (bin % BINS);
}
