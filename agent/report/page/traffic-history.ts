// The traffic of load balancers in the last two minutes, for a page that opens one of them. Has a value for each five
// seconds, in a fixed piece of memory: a load balancer has a place in it from its first connection until it was quiet for two
// minutes.

import type { OwnerKey } from '../../model/load-balancer.ts';

/** Of one load balancer at one moment; NaN if it is unknown. */
export interface Traffic {
  /** New connections in a second. */
  readonly rate: number;
  /** Open connections. */
  readonly open: number;
}

/** Values of five seconds each, the newest last; empty if nothing is known. */
export interface TrafficValues {
  readonly rates: readonly number[];
  readonly open: readonly number[];
}

export const BIN_MS = 5_000;
export const BINS = 24;
/** Load balancers with a place. */
export const MAX_PLACES = 5_000;
/** Numbers of one place: a rate and the open connections for each bin. */
const PLACE_SIZE = 2 * BINS;

interface Place {
  readonly offset: number;
  /** The last bin with traffic. */
  busyAt: number;
}

export class TrafficHistory {
  readonly #places = new Map<OwnerKey, Place>();
  readonly #free: number[] = [];
  /** By place, then by bin; made with the first place. */
  #values: Float32Array | undefined;
  /** The number of the newest bin, from the begin of the clock. */
  #bin = Number.NEGATIVE_INFINITY;
  /** How many bins up to the newest one have values. */
  #known = 0;

  /** `now`: monotonic milliseconds. The values count from the last call until now. */
  record(now: number, traffic: ReadonlyMap<OwnerKey, Traffic>): void {
    const bin = Math.floor(now / BIN_MS);
    const passed = bin - this.#bin;
    const first = passed > BINS ? bin : this.#bin + Math.min(1, passed);
    this.#known = Math.min(BINS, passed > BINS ? 1 : this.#known + passed);
    this.#bin = bin;
    for (const [key, { rate, open }] of traffic) if (rate > 0 || open > 0) this.#place(key, bin);
    for (const [key, place] of this.#places) {
      const { rate = 0, open = 0 } = traffic.get(key) ?? {};
      for (let each = first; each <= bin; each++)
        this.#put(offsetOf(place, each), rate || 0, open || 0, passed === 0);
      if (bin - place.busyAt < BINS) continue;
      this.#places.delete(key);
      this.#free.push(place.offset);
    }
  }

  of(key: OwnerKey): TrafficValues {
    const place = this.#places.get(key);
    const values = this.#values;
    if (place === undefined && this.#places.size === MAX_PLACES) return { rates: [], open: [] };
    const bins = Array.from({ length: this.#known }, (_, at) => this.#bin - this.#known + 1 + at);
    const read = (which: 0 | 1) =>
      bins.map((bin) =>
        place === undefined || values === undefined ? 0 : (values[offsetOf(place, bin) + which] ?? 0),
      );
    return { rates: read(0), open: read(1) };
  }

  #place(key: OwnerKey, bin: number): void {
    const known = this.#places.get(key);
    if (known !== undefined) {
      known.busyAt = bin;
      return;
    }
    if (this.#places.size === MAX_PLACES) return;
    this.#values ??= new Float32Array(MAX_PLACES * PLACE_SIZE);
    const offset = this.#free.pop() ?? this.#places.size * PLACE_SIZE;
    this.#values.fill(0, offset, offset + PLACE_SIZE);
    this.#places.set(key, { offset, busyAt: bin });
  }

  /** `isMore`: another round has ended in the same bin, which keeps the greater numbers. */
  #put(offset: number, rate: number, open: number, isMore: boolean): void {
    const values = this.#values;
    if (values === undefined) return;
    values[offset] = isMore ? Math.max(values[offset] ?? 0, rate) : rate;
    values[offset + 1] = isMore ? Math.max(values[offset + 1] ?? 0, open) : open;
  }
}

function offsetOf({ offset }: Place, bin: number): number {
  return offset + 2 * (bin % BINS);
}
