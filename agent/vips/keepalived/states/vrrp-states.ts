// The state of each VRRP instance, from keepalived's notifications and dumps; reports each transition once. The counters
// continue from those in the file.

import type { VrrpState, VrrpStateName } from '../../vrrp.ts';
import type { InstanceDump } from '../process/dump.ts';
import type { Adverts, InstanceCounts } from './vrrp-counters.ts';

export interface InstanceState {
  readonly state: VrrpStateName;
  readonly since: Date | undefined;
  /** Since the start of the agent. */
  readonly transitions: number;
  readonly priority: number;
  /** Advertisements, summed over all processes of keepalived. */
  readonly adverts: Adverts;
  /** Transitions by the state that was reached, summed over all agents. */
  readonly reached: InstanceCounts['reached'];
}

const NO_ADVERTS: Adverts = { sent: 0, received: 0 };
const NOTHING_YET: InstanceState = {
  state: 'unknown',
  since: undefined,
  transitions: 0,
  priority: 0,
  adverts: NO_ADVERTS,
  reached: { master: 0, backup: 0, fault: 0, unknown: 0 },
};

export class VrrpStates {
  readonly #states = new Map<string, InstanceState>();
  readonly #onState: (state: VrrpState) => void;
  readonly #onCounts: () => void;
  /** keepalived's own counters in its last dump, by instance. */
  readonly #counted = new Map<string, Adverts>();
  /** The last state that an earlier agent has seen, by instance, until this agent has seen one. */
  readonly #earlier = new Map<string, VrrpStateName>();

  /** `onCounts` is called after each change of counts(). */
  constructor(
    onState: (state: VrrpState) => void,
    kept: readonly InstanceCounts[] = [],
    onCounts: () => void = () => undefined,
  ) {
    this.#onState = onState;
    this.#onCounts = onCounts;
    for (const { name, state, adverts, counted, reached } of kept) {
      this.#states.set(name, { ...NOTHING_YET, adverts, reached });
      this.#counted.set(name, counted);
      this.#earlier.set(name, state);
    }
  }

  /** The content for the file of counters. */
  counts(): readonly InstanceCounts[] {
    return Array.from(this.#states, ([name, { state, adverts, reached }]) => ({
      name,
      state: this.#earlier.get(name) ?? state,
      adverts,
      counted: this.#counted.get(name) ?? NO_ADVERTS,
      reached,
    }));
  }

  of(instance: string): InstanceState {
    return this.#states.get(instance) ?? NOTHING_YET;
  }

  /** A notification, which a later dump may correct. */
  notified(instance: string, state: VrrpStateName, priority: number, now: Date): void {
    this.#set(instance, state, now, priority);
  }

  /** A dump. */
  update(instances: readonly InstanceDump[]): void {
    for (const { name, state, lastTransition, priority, advertsSent, advertsReceived } of instances) {
      this.#set(name, state, new Date(lastTransition * 1000), priority);
      this.#count(name, { sent: advertsSent, received: advertsReceived });
    }
  }

  /** Forgets all other instances. */
  retain(instances: readonly string[]): void {
    for (const instance of this.#states.keys()) {
      if (instances.includes(instance)) continue;
      this.#states.delete(instance);
      this.#counted.delete(instance);
      this.#earlier.delete(instance);
    }
  }

  /** keepalived has ended. */
  lost(now: Date): void {
    for (const instance of this.#states.keys()) this.#set(instance, 'unknown', now, 0);
  }

  /** After a restart or a change of keepalived.conf, keepalived counts from 0 again. */
  #count(instance: string, now: Adverts): void {
    const last = this.#counted.get(instance) ?? NO_ADVERTS;
    const before = this.of(instance);
    const hasChanged = now.sent !== last.sent || now.received !== last.received;
    const more = (of: keyof Adverts): number =>
      before.adverts[of] + now[of] - (now[of] < last[of] ? 0 : last[of]);
    this.#counted.set(instance, now);
    this.#states.set(instance, { ...before, adverts: { sent: more('sent'), received: more('received') } });
    if (hasChanged) this.#onCounts();
  }

  #set(instance: string, state: VrrpStateName, since: Date, priority: number): void {
    const before = this.of(instance);
    const isNew = before.state !== state;
    // The first state that an agent sees is no transition if an earlier agent has seen it.
    const isReached = isNew && this.#earlier.get(instance) !== state;
    this.#earlier.delete(instance);
    const { adverts, reached } = before;
    this.#states.set(instance, {
      state,
      since: isNew ? since : before.since,
      transitions: before.transitions + (isNew ? 1 : 0),
      priority,
      adverts,
      reached: isReached ? { ...reached, [state]: reached[state] + 1 } : reached,
    });
    if (isNew) this.#onState({ instance, state, since });
    if (isReached) this.#onCounts();
  }
}
