// The VIPs that this host announces and no router has. A VIP counts after a time in which a session may be established.
// Pure, with a clock.

export interface UnreachedVipsOptions {
  /** A router has a route to this VIP by this host. */
  readonly isReached: (address: string) => boolean;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
}

const PATIENCE_MS = 3_000;

export class UnreachedVips {
  readonly #options: UnreachedVipsOptions;
  /** VIP → since when no router has it. */
  readonly #since = new Map<string, number>();
  readonly #late = new Set<string>();

  constructor(options: UnreachedVipsOptions) {
    this.#options = options;
  }

  /** `announced`: all VIPs with a route. Gives those that now count, or count no more. */
  look(announced: ReadonlyMap<string, unknown>): readonly string[] {
    const { isReached, now } = this.#options;
    const changed: string[] = [];
    for (const address of this.#since.keys())
      if (!announced.has(address) || isReached(address)) {
        this.#since.delete(address);
        if (this.#late.delete(address)) changed.push(address);
      }
    for (const address of announced.keys()) {
      if (this.#late.has(address) || isReached(address)) continue;
      const since = this.#since.get(address) ?? now();
      this.#since.set(address, since);
      if (now() - since < PATIENCE_MS) continue;
      this.#late.add(address);
      changed.push(address);
    }
    return changed;
  }

  has(address: string): boolean {
    return this.#late.has(address);
  }

  all(): Iterable<string> {
    return this.#late;
  }

  get size(): number {
    return this.#late.size;
  }
}
