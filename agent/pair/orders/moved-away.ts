// Whether routers have moved clients away from this host: no new connection comes here any more, while so many come to the other
// hosts that chance is no explanation.

import { type Clock, passed } from '../../base/clock.ts';
import { NOT_COUNTED } from './arrivals.ts';

export interface MovedAwayOptions {
  /** New connections to this host; NOT_COUNTED if that is not known. */
  readonly here: () => number;
  /** The same of each other host that is connected and not lowered, by name; undefined if the settings name no hosts. */
  readonly others: () => ReadonlyMap<string, number> | undefined;
  readonly clock: Clock;
}

export interface Move {
  /**
   * `moved`: proved. `quiet`: no new connection comes here, but too few come to the others to prove anything. `arriving`: they
   * still come here. `alone`: no other host could take them. `uncounted`: they cannot be counted here.
   */
  readonly kind: 'moved' | 'quiet' | 'arriving' | 'alone' | 'uncounted';
  /** Until the last new connection here, milliseconds. */
  readonly lastMs: number;
  /** How many have come since the call: here, and to the others since the last one here. */
  readonly here: number;
  readonly there: number;
}

const POLL_INTERVAL_MS = 50;
const MOVE_TIMEOUT_MS = 5_000;
/** Routers that have moved some flows may need so long for others; the counters of the hosts are read at different times. */
const QUIET_MS = 500;
/** Without proof. */
const MOST_QUIET_MS = 2_000;
/** As long as routers of today need, if nothing can be counted. */
const UNCOUNTED_MS = 500;
/** With so many times as many connections as there are hosts, less than one in a thousand of such silences is chance. */
const PROOF_PER_HOST = 7;

export async function movedAway({ here, others, clock }: MovedAwayOptions): Promise<Move> {
  const began = clock.monotonic();
  const first = here();
  if (first === NOT_COUNTED) {
    await passed(clock, UNCOUNTED_MS);
    return { kind: 'uncounted', lastMs: 0, here: 0, there: 0 };
  }
  let last = { count: first, at: began };
  /** Each other host → its number when the last connection came here. */
  let base = new Map<string, number>();
  for (;;) {
    const [now, count, theirs] = [clock.monotonic(), here(), others()];
    if (count === NOT_COUNTED) return { kind: 'uncounted', lastMs: 0, here: 0, there: 0 };
    if (count !== last.count) {
      last = { count, at: now };
      base = new Map();
    }
    const there = gained(base, theirs ?? new Map());
    const move = { lastMs: Math.round(last.at - began), here: last.count - first, there };
    const quietMs = now - last.at;
    if (theirs?.size === 0) return { kind: 'alone', ...move };
    const hosts = (theirs?.size ?? 0) + 1;
    if (quietMs >= QUIET_MS && there >= PROOF_PER_HOST * hosts) return { kind: 'moved', ...move };
    if (quietMs >= MOST_QUIET_MS) return { kind: 'quiet', ...move };
    if (now - began >= MOVE_TIMEOUT_MS) return { kind: 'arriving', ...move };
    await passed(clock, POLL_INTERVAL_MS);
  }
}

/** How many have come to the others since `base`, to which those are added that are counted for the first time. */
function gained(base: Map<string, number>, now: ReadonlyMap<string, number>): number {
  let sum = 0;
  for (const [name, count] of now) {
    const was = base.get(name);
    if (count === NOT_COUNTED) continue;
    if (was === undefined || count < was) base.set(name, count);
    else sum += count - was;
  }
  return sum;
}
