// Finds TCP listeners of the kernel whose members refuse or do not answer, from the counters of nft: a connection that is
// refused costs one packet without options or data, a silent one none, and every other has an answer with more than that.
// What several members do is counted together, so that only what none of them answers is known.
// Why: docs/design/decisions/0080-failures-of-clients.md

import { type Clock, systemClock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { Rounds } from '../../base/rounds.ts';
import { FailureWindow, type Interval } from '../../dataplane/failure-window.ts';
import type { RecentFailures } from '../../dataplane/recent-failures.ts';
import type { Log } from '../../host/log.ts';
import type { Family, OwnerKey } from '../../model/load-balancer.ts';
import { ownerOfListener } from '../../model/names.ts';
import { type ListenerCounts, NO_LISTENER_COUNTS } from '../rules/counts.ts';
import { isDirect, type KernelListener } from '../rules/kernel-listener.ts';

export interface AnswerWatchOptions {
  /** The listeners that the kernel has. */
  readonly listeners: () => readonly KernelListener[];
  /** What the kernel has counted until now, by listener. */
  readonly counts: () => Promise<ReadonlyMap<string, ListenerCounts>>;
  /** The failures of these load balancers have changed. */
  readonly onChanged: (keys: Iterable<OwnerKey>) => void;
  readonly log: Log;
  readonly clock?: Clock;
}

/** What was counted between two readings. */
interface Difference {
  readonly flows: number;
  readonly packets: number;
  readonly bytes: number;
}

const WINDOW_MS = 60_000;
const INTERVAL_MS = 10_000;
/** For each listener, so that a reading takes a small part of a processor: nft reads all counters. */
const REST_FOR_EACH_MS = 5;
/** The headers of IP and TCP without options, which a reset has. */
const BARE_BYTES: Readonly<Record<Family, number>> = { v4: 40, v6: 60 };

export class AnswerWatch {
  readonly #options: AnswerWatchOptions;
  readonly #clock: Clock;
  readonly #rounds: Rounds;
  /** By listener: the last reading, and what was counted between the two before it. */
  #last: ReadonlyMap<string, ListenerCounts> = new Map();
  #before: ReadonlyMap<string, Difference> = new Map();
  readonly #windows = new Map<string, FailureWindow>();
  #known: ReadonlyMap<string, RecentFailures> = new Map();
  #size = 0;

  constructor(options: AnswerWatchOptions) {
    this.#options = options;
    const { log, clock = systemClock } = options;
    this.#clock = clock;
    this.#rounds = new Rounds({
      intervalMs: () => Math.max(INTERVAL_MS, this.#size * REST_FOR_EACH_MS),
      work: () => this.#round(),
      onFailed: (error) => log.debug('Cannot read what members answer', { error: messageOf(error) }),
      clock,
    });
  }

  start(): void {
    this.#rounds.start();
  }

  close(): void {
    this.#rounds.close();
  }

  /** As of the end of the last round; undefined if nothing failed in the minute before. */
  of(listener: string): RecentFailures | undefined {
    return this.#known.get(listener);
  }

  async #round(): Promise<void> {
    const listeners = this.#options
      .listeners()
      .filter((each) => each.protocol === 'TCP' && each.slots.length > 0 && !isDirect(each));
    this.#size = listeners.length;
    const counts = listeners.length === 0 ? new Map<string, ListenerCounts>() : await this.#options.counts();
    const [last, before] = [this.#last, new Map<string, Difference>()];
    const known = new Map<string, RecentFailures>();
    for (const listener of listeners) {
      const { name } = listener;
      const difference = differenceOf(last.get(name), counts.get(name));
      if (difference === undefined) continue;
      before.set(name, difference);
      const failures = this.#judge(listener, difference);
      if (failures !== undefined) known.set(name, failures);
    }
    for (const name of this.#windows.keys()) if (!before.has(name)) this.#windows.delete(name);
    this.#last = new Map(listeners.map(({ name }) => [name, counts.get(name) ?? NO_LISTENER_COUNTS]));
    this.#before = before;
    this.#tell(known);
  }

  /** Judges the last round, whose last connections may have had their answers in this one. */
  #judge({ name, family, members }: KernelListener, now: Difference): RecentFailures | undefined {
    const before = this.#before.get(name);
    const window = this.#windows.get(name) ?? new FailureWindow(WINDOW_MS);
    if (before !== undefined) window.add(intervalOf(before, now, family), this.#clock.monotonic());
    if (!window.isOpen) {
      this.#windows.delete(name);
      return undefined;
    }
    this.#windows.set(name, window);
    const own = { ...window.sum(), unit: 'flows' } as const;
    const [only, ...others] = members.filter(({ state }) => state === 'ready');
    const isOnly = only !== undefined && others.length === 0;
    return { ...own, share: window.share, members: new Map(isOnly ? [[only.name, own]] : []) };
  }

  #tell(known: ReadonlyMap<string, RecentFailures>): void {
    const before = this.#known;
    this.#known = known;
    const changed = [...new Set([...before.keys(), ...known.keys()])].filter(
      (name) => before.get(name)?.share !== known.get(name)?.share,
    );
    if (changed.length > 0) this.#options.onChanged(new Set(changed.map(ownerOfListener)));
  }
}

/** undefined before the second reading, also of a listener that was gone in between, whose counters began again. */
function differenceOf(
  last: ListenerCounts | undefined,
  now: ListenerCounts | undefined,
): Difference | undefined {
  if (last === undefined || now === undefined) return undefined;
  const flows = now.flows.packets - last.flows.packets;
  const packets = now.sent.packets - last.sent.packets;
  if (flows < 0 || packets < 0) return undefined;
  return { flows, packets, bytes: now.sent.bytes - last.sent.bytes };
}

function intervalOf(before: Difference, now: Difference, family: Family): Interval {
  const packets = before.packets + now.packets;
  const isAnswered =
    packets > before.flows + now.flows || before.bytes + now.bytes > packets * BARE_BYTES[family];
  const { flows } = before;
  return {
    unit: 'flows',
    tried: flows,
    failed: isAnswered ? 0 : flows,
    hasSuccess: isAnswered && flows > 0,
  };
}
