// Notifies observers that load balancers changed: the cluster's status, the peer, the log, the page, the members kept
// on disk. One fan-out, in the order of subscription.

export interface ChangeObserver {
  /** The agent starts with these; nothing is known yet of how they are served. */
  began?(keys: ReadonlySet<string>): void;
  /** What is desired of these load balancers changed, or what is served of them, or how they are doing. */
  changed(keys: ReadonlySet<string>): void;
}

export class ChangeObservers {
  readonly #observers: ChangeObserver[] = [];

  /** undefined for a part that this host does not have. */
  subscribe(...observers: readonly (ChangeObserver | undefined)[]): void {
    for (const observer of observers) if (observer !== undefined) this.#observers.push(observer);
  }

  began(keys: Iterable<string>): void {
    const all = new Set(keys);
    for (const observer of this.#observers) observer.began?.(all);
  }

  changed(keys: Iterable<string>): void {
    const some = new Set(keys);
    if (some.size > 0) for (const observer of this.#observers) observer.changed(some);
  }
}
