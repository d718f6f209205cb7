// The state of each instance, from what keepalived notifies and from what it tells when it is asked; whoever wants to
// know hears of every transition once.

import type { InstanceDump, Notification } from './dump.ts';
import type { VrrpState, VrrpStateName } from './vrrp.ts';

export interface InstanceState {
  readonly state: VrrpStateName;
  readonly since: Date | undefined;
  readonly transitions: number;
  readonly priority: number;
}

const NOTHING_YET: InstanceState = { state: 'unknown', since: undefined, transitions: 0, priority: 0 };

export class VrrpStates {
  readonly #states = new Map<string, InstanceState>();
  readonly #onState: (state: VrrpState) => void;

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
    for (const { name, state, lastTransition, priority } of instances)
      this.#set(name, state, new Date(lastTransition * 1000), priority);
  }

  /** keepalived is gone. */
  lost(now: Date): void {
    for (const instance of this.#states.keys()) this.#set(instance, 'unknown', now, 0);
  }

  #set(instance: string, state: VrrpStateName, since: Date, priority: number): void {
    const before = this.of(instance);
    const isNew = before.state !== state;
    this.#states.set(instance, {
      state,
      since: isNew ? since : before.since,
      transitions: before.transitions + (isNew ? 1 : 0),
      priority,
    });
    if (isNew) this.#onState({ instance, state, since });
  }
}
