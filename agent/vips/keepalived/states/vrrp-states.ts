// The state of each instance, from what keepalived notifies and from what it tells when it is asked; whoever wants to
// know hears of every transition once. What is counted goes on from what was kept.

import type { VrrpState, VrrpStateName } from '../../vrrp.ts';
import type { InstanceDump, Notification } from './dump.ts';
import type { Adverts, InstanceCounts } from './vrrp-counters.ts';

export interface InstanceState {
  readonly state: VrrpStateName;
  readonly since: Date | undefined;
  /** Since the agent began to watch. */
  readonly transitions: number;
  readonly priority: number;
  /** Advertisements, over every keepalived that has told of them. */
  readonly adverts: Adverts;
  /** Transitions by the state that was reached, over every agent. */
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
  /** What the keepalived that runs had counted when it last told, by instance. */
  readonly #counted = new Map<string, Adverts>();
  /** The state that an instance was in when the agent before this one let go of it. */
  readonly #left = new Map<string, VrrpStateName>();
  readonly #onCounts: () => void;

  /** `onCounts`: there is something else to be kept. */
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
      this.#left.set(name, state);
    }
  }

  /** To be kept for the agent that comes after this one. */
  counts(): readonly InstanceCounts[] {
    return Array.from(this.#states, ([name, { state, adverts, reached }]) => ({
      name,
      state: this.#left.get(name) ?? state,
      adverts,
      counted: this.#counted.get(name) ?? NO_ADVERTS,
      reached,
    }));
  }

  of(instance: string): InstanceState {
    return this.#states.get(instance) ?? NOTHING_YET;
  }

  notified({ instance, state, priority }: Notification & { readonly kind: 'state' }, now: Date): void {
    this.#set(instance, state, now, priority);
  }

  /** The truth, whatever has been notified before. */
  told(instances: readonly InstanceDump[]): void {
    for (const { name, state, lastTransition, priority, advertsSent, advertsReceived } of instances) {
      this.#set(name, state, new Date(lastTransition * 1000), priority);
      this.#count(name, { sent: advertsSent, received: advertsReceived });
    }
  }

  /** There are no other instances any more. */
  keep(instances: readonly string[]): void {
    for (const instance of this.#states.keys()) {
      if (instances.includes(instance)) continue;
      this.#states.delete(instance);
      this.#counted.delete(instance);
      this.#left.delete(instance);
    }
  }

  /** keepalived is gone. */
  lost(now: Date): void {
    for (const instance of this.#states.keys()) this.#set(instance, 'unknown', now, 0);
  }

  /** A keepalived that was started anew, or has read another file, begins at 0. */
  #count(instance: string, now: Adverts): void {
    const last = this.#counted.get(instance) ?? NO_ADVERTS;
    const before = this.of(instance);
    const isOther = now.sent !== last.sent || now.received !== last.received;
    const more = (of: keyof Adverts): number =>
      before.adverts[of] + now[of] - (now[of] < last[of] ? 0 : last[of]);
    this.#counted.set(instance, now);
    this.#states.set(instance, { ...before, adverts: { sent: more('sent'), received: more('received') } });
    if (isOther) this.#onCounts();
  }

  #set(instance: string, state: VrrpStateName, since: Date, priority: number): void {
    const before = this.of(instance);
    const isNew = before.state !== state;
    // What an agent learns when it starts is no transition where it was so before.
    const isReached = isNew && this.#left.get(instance) !== state;
    this.#left.delete(instance);
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
