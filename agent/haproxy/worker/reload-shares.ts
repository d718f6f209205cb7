// Each namespace's share of reloads: so many at once, then one after each interval. Who has used up its own waits, and the
// others do not; what waits goes along with a reload that another one needs. Pure, except for what is used.
// Why: docs/design/decisions/0073-shares-of-reloads.md

export interface ReloadShare {
  readonly atOnce: number;
  /** Milliseconds. */
  readonly interval: number;
}

/** Others' long connections end some time after each reload, and more old workers delay the next ones. */
export const SHARE: ReloadShare = { atOnce: 9, interval: 60_000 };
/** For the landing: a reload takes some 25 ms, and nothing is there for long. */
export const LANDING_SHARE: ReloadShare = { atOnce: 60, interval: 10_000 };

export class ReloadShares {
  readonly #share: ReloadShare;
  /** Namespace → when its share is whole again; without those whose share is. */
  readonly #wholeAt = new Map<string, number>();

  constructor(share: ReloadShare) {
    this.#share = share;
  }

  /** Milliseconds until the namespace may cause a reload. */
  wait(namespace: string, now: number): number {
    const { atOnce, interval } = this.#share;
    return Math.max(0, (this.#wholeAt.get(namespace) ?? now) - (atOnce - 1) * interval - now);
  }

  /** The namespace has caused a reload. */
  use(namespace: string, now: number): void {
    for (const [each, wholeAt] of this.#wholeAt) if (wholeAt <= now) this.#wholeAt.delete(each);
    this.#wholeAt.set(namespace, Math.max(now, this.#wholeAt.get(namespace) ?? now) + this.#share.interval);
  }
}
