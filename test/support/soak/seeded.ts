// Choices that follow from a seed, so that a run can be repeated: mulberry32, which is small and good enough for tests.

export class Seeded {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** 0 to `below` - 1. */
  below(below: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  }

  one<T>(of: readonly T[]): T {
    const chosen = of[this.below(of.length)];
    if (chosen === undefined) throw new Error('Nothing to choose from');
    return chosen;
  }

  /** At least one of them, in their order. */
  some<T>(of: readonly T[]): readonly T[] {
    const chosen = of.filter(() => this.below(2) === 0);
    return chosen.length > 0 ? chosen : [this.one(of)];
  }
}
