// Collects repeated measurements of a soak and finds those that have grown. It has no side effects.

export interface Verdict {
  readonly name: string;
  /** The values of the first and the last third after the warm-up. */
  readonly first: number;
  readonly last: number;
  readonly isFlat: boolean;
  readonly values: readonly number[];
}

/** The share of values at the beginning during which caches and pools fill. */
const WARM_UP = 0.2;

export class SoakSeries {
  readonly #values = new Map<string, number[]>();

  add(name: string, value: number): void {
    const values = this.#values.get(name) ?? [];
    values.push(value);
    this.#values.set(name, values);
  }

  /** `allowed` is the growth that a series of this name may have. */
  verdicts(allowed: (name: string) => number): readonly Verdict[] {
    return [...this.#values].map(([name, values]) => {
      const { first, last } = thirds(values);
      return { name, first, last, isFlat: last - first <= allowed(name), values };
    });
  }
}

/**
 * The lowest value of each third. Work in progress (a reload, a scrape, a failover) adds to some values, while a leak adds
 * to all of them.
 */
export function thirds(values: readonly number[]): { readonly first: number; readonly last: number } {
  const warm = values.slice(Math.floor(values.length * WARM_UP));
  const third = Math.max(1, Math.floor(warm.length / 3));
  return { first: Math.min(...warm.slice(0, third)), last: Math.min(...warm.slice(-third)) };
}
