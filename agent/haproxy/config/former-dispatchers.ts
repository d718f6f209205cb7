// Listeners that a dispatcher led to until a moment ago: a client that an old worker has accepted there may still send its first
// message of TLS, and then has to reach the part that ends TLS, where only the newest worker accepts.

import { type Clock, systemClock } from '../../base/clock.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';

/** A dispatcher waits 5 s for that message (`inspect-delay`); the reload itself takes time, too. */
const WAIT_MS = 10_000;

export class FormerDispatchers {
  readonly #clock: Clock;
  /** Key: a listener; when no dispatcher in front of it can have such clients any more. */
  readonly #until = new Map<string, number>();

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  /** The names of such listeners when a worker that booted with these is replaced. */
  after(booted: ReadonlyMap<string, LoadBalancer>): ReadonlySet<string> {
    const now = this.#clock.monotonic();
    for (const { listeners } of booted.values())
      for (const { name, dispatch } of listeners)
        if (dispatch !== undefined) this.#until.set(name, now + WAIT_MS);
    for (const [name, until] of this.#until) if (until < now) this.#until.delete(name);
    return new Set(this.#until.keys());
  }
}
