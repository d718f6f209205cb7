// Deletes flows to members that the rules do not have any more, whose clients would keep sending to them, and flows from before
// a place had a member; whatever way the rules came into force. In the background, one pass through all flows of the host for
// all that is due.
// Why: docs/design/decisions/0077-flows-in-one-pass.md

import { backoffMs } from '../../base/backoff.ts';
import { type Clock, systemClock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { Fault } from '../../base/fault.ts';
import type { Log } from '../../host/log.ts';
import type { KernelListener, ListenerChange } from '../rules/kernel-listener.ts';
import { dueAfter, familyOfKey, goneWith, keysOf, orderOf, type PlaceKey } from './flow-order.ts';
import { FlowProgram } from './flow-program.ts';

export interface ForgetFlowsOptions {
  readonly netns: string;
  readonly log: Log;
  readonly program?: Pick<FlowProgram, 'pass' | 'close'>;
  readonly clock?: Clock;
}

/** So long the flows of a member that is gone stay, by which the answers to the last queries reach their clients. */
const LAST_ANSWERS_MS = 500;
/** A pass takes at most this part of a processor. */
const SHARE_OF_TIME = 1 / 4;
/** Time of a processor; not measured, because on a busy machine a pass waits more than it works. */
const FLOW_COST_MS = 0.005;
const RETRY = { firstMs: 500, mostMs: 30_000 } as const;

export class ForgetFlows {
  readonly #options: ForgetFlowsOptions;
  readonly #clock: Clock;
  readonly #program: Pick<FlowProgram, 'pass' | 'close'>;
  readonly #fault = new Fault();
  /** Key: a port that is due; value: from when on, in milliseconds of the clock; the earliest first. */
  readonly #now = new Map<PlaceKey, number>();
  readonly #later = new Map<PlaceKey, number>();
  /** Key: a port of the rules, or one that is gone and due. */
  readonly #places = new Map<PlaceKey, KernelListener | undefined>();
  /** Place → endpoint of a member that has left it → until when its last answers reach their clients. */
  readonly #leaving = new Map<PlaceKey, Map<string, number>>();
  #cancel: (() => void) | undefined;
  #isPassing = false;
  #restUntil = 0;
  #failures = 0;
  #isClosed = false;

  constructor(options: ForgetFlowsOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#program = options.program ?? new FlowProgram(options.netns);
  }

  /** The kernel had rules for these places when the agent started. */
  restore(places: Iterable<PlaceKey>): void {
    for (const key of places) this.#places.set(key, undefined);
  }

  /** These changes are in the kernel. */
  changed(changes: readonly ListenerChange[]): void {
    const dues = changes.map(dueAfter);
    const old = changes.flatMap(({ before }) => (before === undefined ? [] : keysOf(before)));
    for (const key of old) this.#places.set(key, undefined);
    for (const { after } of changes)
      for (const key of after === undefined ? [] : keysOf(after)) this.#places.set(key, after);
    for (const change of changes) this.#noteLeaving(change);
    this.#due(
      dues.flatMap(({ now }) => now),
      dues.flatMap(({ later }) => later),
    );
    for (const key of old) this.#forget(key);
  }

  /** All rules were loaded: these are the listeners of the kernel, and nothing is known about the flows. */
  loaded(listeners: readonly KernelListener[]): void {
    for (const key of this.#places.keys()) this.#places.set(key, undefined);
    for (const listener of listeners) for (const key of keysOf(listener)) this.#places.set(key, listener);
    // Twice, because packets that came before the load may still make entries.
    this.#due([...this.#places.keys()], [...this.#places.keys()]);
  }

  /** Why flows to members that are gone may stay; '' if they do not. */
  get fault(): string {
    return this.#fault.text;
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
    this.#program.close();
  }

  #due(now: readonly PlaceKey[], later: readonly PlaceKey[]): void {
    const at = this.#clock.monotonic();
    for (const key of now) if (!this.#now.has(key)) this.#now.set(key, at);
    for (const key of later) if (!this.#later.has(key)) this.#later.set(key, at + LAST_ANSWERS_MS);
    this.#schedule();
  }

  #schedule(): void {
    this.#cancel?.();
    if (this.#isClosed || this.#isPassing) return;
    const first = Math.min(
      ...[this.#now, this.#later].map((due) => due.values().next().value ?? Number.POSITIVE_INFINITY),
    );
    if (first === Number.POSITIVE_INFINITY) return;
    const waitMs = Math.max(first, this.#restUntil) - this.#clock.monotonic();
    this.#cancel = this.#clock.after(Math.max(0, waitMs), () => void this.#pass());
  }

  async #pass(): Promise<void> {
    this.#isPassing = true;
    const at = this.#clock.monotonic();
    const keys = [...new Set([...taken(this.#now, at), ...taken(this.#later, at)])];
    const orders = keys.map((key) => orderOf(key, this.#places.get(key), this.#stillLeaving(key, at)));
    const why = await this.#program.pass(orders, new Set(keys.map(familyOfKey))).then(({ flows }) => {
      this.#restUntil = at + (flows * FLOW_COST_MS) / SHARE_OF_TIME;
      return '';
    }, messageOf);
    this.#isPassing = false;
    this.#judge(why);
    if (why === '') for (const key of keys) this.#forget(key);
    else {
      this.#restUntil = this.#clock.monotonic() + backoffMs(++this.#failures, RETRY);
      this.#due(keys, []);
    }
    this.#schedule();
  }

  #noteLeaving(change: ListenerChange): void {
    const until = this.#clock.monotonic() + LAST_ANSWERS_MS;
    const gone = goneWith(change);
    for (const key of gone.length === 0 || change.after === undefined ? [] : keysOf(change.after)) {
      const leaving = this.#leaving.get(key) ?? new Map<string, number>();
      for (const each of gone) leaving.set(each, until);
      this.#leaving.set(key, leaving);
    }
  }

  /** Members that left the place after the change for which the pass is due; another pass follows for them. */
  #stillLeaving(key: PlaceKey, at: number): readonly string[] {
    const leaving = this.#leaving.get(key) ?? new Map<string, number>();
    for (const [each, until] of leaving) if (until <= at) leaving.delete(each);
    if (leaving.size === 0) this.#leaving.delete(key);
    else if (!this.#later.has(key)) this.#later.set(key, Math.max(...leaving.values()));
    return [...leaving.keys()];
  }

  #judge(why: string): void {
    if (this.#isClosed) return;
    if (why === '') this.#failures = 0;
    if (!this.#fault.set(why && `Clients that do not pause stay with members that are gone: ${why}`)) return;
    if (why === '') this.#options.log.info('Flows to members that are gone are deleted again');
    else this.#options.log.warn(this.#fault.text);
  }

  /** A place that is gone, unless its flows are still to be deleted. */
  #forget(key: PlaceKey): void {
    if (this.#places.get(key) === undefined && !this.#now.has(key) && !this.#later.has(key))
      this.#places.delete(key);
  }
}

/** Removes those that are due. */
function taken(due: Map<PlaceKey, number>, now: number): readonly PlaceKey[] {
  const keys = [...due].filter(([, at]) => at <= now).map(([key]) => key);
  for (const key of keys) due.delete(key);
  return keys;
}
