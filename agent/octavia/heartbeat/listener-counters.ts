// What was counted for each listener since the last heartbeat that was sent. HAProxy's counters begin again with each of its workers,
// and the agent's memory with each agent: the last totals are on disk.

import type { Differences, ListenerStats } from './message.ts';

type Counters = Omit<ListenerStats, 'conns'>;

/** Totals by listener, as Octavia's own agent keeps them in stats_counters.json. */
export type KeptCounters = Readonly<
  Record<
    string,
    { readonly bin: number; readonly bout: number; readonly stot: number; readonly ereq: number }
  >
>;

export class ListenerCounters {
  readonly #last = new Map<string, Counters>();
  #pending = new Map<string, Counters>();

  constructor(kept: KeptCounters = {}) {
    for (const [id, { bin, bout, stot, ereq }] of Object.entries(kept))
      this.#last.set(id, { tx: bout, rx: bin, totconns: stot, ereq });
  }

  /** Adds what these totals have more than the last ones; a total that fell has begun again. */
  observe(totals: ReadonlyMap<string, Counters>): void {
    for (const [id, now] of totals) {
      const last = this.#last.get(id);
      this.#pending.set(id, plus(this.#pending.get(id), less(now, last)));
      this.#last.set(id, now);
    }
  }

  /** The counters of these listeners begin again with 0. */
  restarted(listeners: Iterable<string>): void {
    for (const id of listeners) this.#last.set(id, { tx: 0, rx: 0, totconns: 0, ereq: 0 });
  }

  /** Listeners that are gone, with what they have not reported. */
  forget(listeners: Iterable<string>): void {
    for (const id of listeners) {
      this.#last.delete(id);
      this.#pending.delete(id);
    }
  }

  pending(): Differences {
    return this.#pending;
  }

  /** The pending differences are sent. */
  sent(): void {
    this.#pending = new Map();
  }

  kept(): KeptCounters {
    return Object.fromEntries(
      [...this.#last].map(([id, { tx, rx, totconns, ereq }]) => [
        id,
        { bin: rx, bout: tx, stot: totconns, ereq },
      ]),
    );
  }
}

function less(now: Counters, last: Counters | undefined): Counters {
  const one = (field: keyof Counters): number =>
    last === undefined || now[field] < last[field] ? now[field] : now[field] - last[field];
  return { tx: one('tx'), rx: one('rx'), totconns: one('totconns'), ereq: one('ereq') };
}

function plus(a: Counters | undefined, b: Counters): Counters {
  if (a === undefined) return b;
  return { tx: a.tx + b.tx, rx: a.rx + b.rx, totconns: a.totconns + b.totconns, ereq: a.ereq + b.ereq };
}
