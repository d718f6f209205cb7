// What is measured again and again during a soak, and whether it has stayed what it was. Pure but for its own memory.

export interface Verdict {
  readonly name: string;
  /** Of the first and the last third, after the warm-up. */
  readonly first: number;
  readonly last: number;
  readonly isFlat: boolean;
  readonly values: readonly number[];
}

/** Part of all values at the beginning in which what is made once is made. */
const WARM_UP = 0.2;

export class SoakSeries {
  readonly #values = new Map<string, number[]>();

  add(name: string, value: number): void {
    const values = this.#values.get(name) ?? [];
    values.push(value);
    this.#values.set(name, values);
  }

  /** `allowed`: what a series of this name may grow by. */
  verdicts(allowed: (name: string) => number): readonly Verdict[] {
    return [...this.#values].map(([name, values]) => {
      const { first, last } = thirds(values);
      return { name, first, last, isFlat: last - first <= allowed(name), values };
    });
  }
}

/**
 * Of each the lowest value. What is under way at a moment (a reload, a scrape, a failover: the longer, the busier the
 * machine) comes on top of what is always there, in any share of the values; what is left behind is in all of them.
 */
export function thirds(values: readonly number[]): { readonly first: number; readonly last: number } {
  const warm = values.slice(Math.floor(values.length * WARM_UP));
  const third = Math.max(1, Math.floor(warm.length / 3));
  return { first: Math.min(...warm.slice(0, third)), last: Math.min(...warm.slice(-third)) };
}
