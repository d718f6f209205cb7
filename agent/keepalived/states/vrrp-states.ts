// The state of each instance, from what keepalived notifies and from what it tells when it is asked; whoever wants to
// know hears of every transition once.

import type { InstanceDump, Notification } from '../process/dump.ts';
import type { VrrpState, VrrpStateName } from '../vrrp.ts';

export interface InstanceState {
  readonly state: VrrpStateName;
  readonly since: Date | undefined;
  readonly transitions: number;
  readonly priority: number;
  /** Advertisements, over every keepalived that has told of them. */
  readonly adverts: Adverts;
}

export interface Adverts {
  readonly sent: number;
  readonly received: number;
}

const NO_ADVERTS: Adverts = { sent: 0, received: 0 };
const NOTHING_YET: InstanceState = {
  state: 'unknown',
  since: undefined,
  transitions: 0,
  priority: 0,
  adverts: NO_ADVERTS,
};

export class VrrpStates {
  readonly #states = new Map<string, InstanceState>();
  readonly #onState: (state: VrrpState) => void;
  /** What the keepalived that runs had counted when it last told, by instance. */
  readonly #counted = new Map<string, Adverts>();

  constructor(onState: (state: VrrpState) => void) {
    this.#onState = onState;
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
    const more = (of: keyof Adverts): number =>
      before.adverts[of] + now[of] - (now[of] < last[of] ? 0 : last[of]);
    this.#counted.set(instance, now);
    this.#states.set(instance, { ...before, adverts: { sent: more('sent'), received: more('received') } });
  }

  #set(instance: string, state: VrrpStateName, since: Date, priority: number): void {
    const before = this.of(instance);
    const isNew = before.state !== state;
    this.#states.set(instance, {
      state,
      since: isNew ? since : before.since,
      transitions: before.transitions + (isNew ? 1 : 0),
      priority,
      adverts: before.adverts,
    });
    if (isNew) this.#onState({ instance, state, since });
  }
}
