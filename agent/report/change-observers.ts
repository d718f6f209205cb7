// Notifies the parts of the agent of load balancers that changed, in the order of their subscription: the writers of the
// cluster, the pair, the log, the status page, the members on disk.

export interface ChangeObserver {
  /** The agent starts with these load balancers; none of them is served yet. */
  began?(keys: ReadonlySet<string>): void;
  /** The desired state, the traffic or the operating status of these load balancers has changed. */
  changed(keys: ReadonlySet<string>): void;
}

export class ChangeObservers {
  readonly #observers: ChangeObserver[] = [];

  /** undefined: this host does not have the part. */
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
