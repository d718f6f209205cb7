// When to believe that an object is gone which its file does not hold any more: soon, or later where so much is missing
// that its disk may be away, or somebody may just be writing it. Knows times only; performance.now() is given.

/** What is missing but still counts. */
export interface Loss {
  readonly since: number;
  /** So much was missing with it that it is believed later. */
  doubted: boolean;
}

/** From so many objects of a kind on the loss of more than half of them is doubted. */
export const MANY = 10;

/** How much later what is doubted is believed. */
const DOUBT = 20;

export class LossPolicy {
  /** Milliseconds. */
  readonly short: number;
  /** When something came back last that had been doubted. */
  #returned = 0;

  constructor(short: number) {
    this.short = short;
  }

  /** When it stops counting; with each file that comes back the others that are doubted get their time anew. */
  ends({ since, doubted }: Loss): number {
    return doubted ? Math.max(since, this.#returned) + this.short * DOUBT : since + this.short;
  }

  /** A whole file that was doubted is there again: somebody is filling the folder. */
  fileReturned(now: number): void {
    this.#returned = now;
  }
}
