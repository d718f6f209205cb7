// What is measured again and again during a soak, and whether it has stayed what it was. Pure but for its own memory.

export interface Verdict {
  readonly name: string;
  /** Medians of the first and the last third, after the warm-up. */
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

export function thirds(values: readonly number[]): { readonly first: number; readonly last: number } {
  const warm = values.slice(Math.floor(values.length * WARM_UP));
  const third = Math.max(1, Math.floor(warm.length / 3));
  return { first: median(warm.slice(0, third)), last: median(warm.slice(-third)) };
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
