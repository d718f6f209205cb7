// A dataplane that serves one engine's listeners and does each step only when the test says so: a reload takes what is desired
// when it begins, and serves that when it ends; a runtime change may be answered late, or refused.

import type { Dataplane } from '../../../agent/dataplane/dataplane.ts';
import type { Outcome, Plan } from '../../../agent/dataplane/forwarder.ts';
import type { Engine, Listener, LoadBalancer } from '../../../agent/model/load-balancer.ts';
import { ownerOfListener } from '../../../agent/model/names.ts';
import { dataplaneStatus } from './dataplane-status.ts';

const NOTHING: Outcome = { acknowledged: new Set(), pending: new Set(), lost: undefined };

export interface ModelDataplaneOptions {
  readonly engine: Engine;
  /** The view that the dataplane has, by key. */
  readonly desired: ReadonlyMap<string, LoadBalancer>;
  /** Commands are enough for all changes, as in the kernel; otherwise each change is a reload, as in HAProxy. */
  readonly hasCommands: boolean;
  readonly replan: (keys: Iterable<string>) => void;
}

interface ModelPlan extends Plan {
  readonly after: ReadonlySet<string>;
}

export class ModelDataplane implements Dataplane<ModelPlan> {
  readonly #options: ModelDataplaneOptions;
  /** The listeners that take connections. */
  #serving: ReadonlySet<string> = new Set();
  /** What is served after the reload under way. */
  #next: ReadonlySet<string> | undefined;
  /** False after a refused change, until all is loaded again. */
  #isKnown = true;
  /** Answers to changes wait for answer(). */
  isLate = false;
  #answer: ((isAccepted: boolean) => void) | undefined;

  constructor(options: ModelDataplaneOptions) {
    this.#options = options;
  }

  /** A reload, or a load of all, begins for any reason. */
  begin(): void {
    if (this.#answer === undefined) this.#next ??= this.#desiredListeners();
  }

  end(isDone: boolean): void {
    if (this.#next === undefined) return;
    if (isDone) {
      this.#serving = this.#next;
      this.#isKnown = true;
    }
    this.#next = undefined;
    this.#options.replan(this.#options.desired.keys());
  }

  /** Answers the change that waits. */
  answer(isAccepted: boolean): void {
    this.#answer?.(isAccepted);
    this.#answer = undefined;
  }

  plan(keys: Iterable<string>): readonly ModelPlan[] {
    const known = this.#options.hasCommands ? (this.#next ?? this.#serving) : this.#serving;
    return Array.from(keys, (key) => {
      const after = this.#listenersOf(key);
      const before = [...known].filter((name) => ownerOfListener(name) === key);
      const isSame = this.#isKnown && before.length === after.size && before.every((name) => after.has(name));
      return { key, effort: isSame ? 'none' : this.#options.hasCommands ? 'runtime' : 'reload', after };
    });
  }

  async apply(plans: readonly ModelPlan[]): Promise<Outcome> {
    const due = plans.filter(({ effort }) => effort !== 'none');
    const keys = new Set(due.map(({ key }) => key));
    if (keys.size === 0) return NOTHING;
    if (!this.#options.hasCommands || !this.#isKnown || this.#next !== undefined)
      return { ...NOTHING, pending: keys };
    const isAccepted = this.isLate
      ? await new Promise<boolean>((resolve) => {
          this.#answer = resolve;
        })
      : true;
    if (!isAccepted) {
      this.#isKnown = false;
      return { ...NOTHING, pending: keys };
    }
    const others = [...this.#serving].filter((name) => !keys.has(ownerOfListener(name)));
    this.#serving = new Set([...others, ...due.flatMap(({ after }) => [...after])]);
    return { ...NOTHING, acknowledged: keys };
  }

  serves(listener: string): boolean {
    return this.#serving.has(listener);
  }

  continues(listener: string): boolean {
    return this.serves(listener) && this.#next?.has(listener) !== false;
  }

  served(key: string): LoadBalancer | 'pending' | undefined {
    const [plan] = this.plan([key]);
    return plan?.effort === 'none' ? this.#options.desired.get(key) : 'pending';
  }

  servesElsewhere(): boolean {
    return false;
  }

  members() {
    return new Map();
  }

  failures(): undefined {
    return undefined;
  }

  problemsOf() {
    return [];
  }

  status() {
    return dataplaneStatus({});
  }

  prepare(): void {}
  async start(): Promise<void> {}
  configure(): void {}
  async close(): Promise<void> {}
  async stop(): Promise<void> {}

  async processes() {
    return [];
  }

  async liveness() {
    return { control: '', listeners: '' };
  }

  async families() {
    return [];
  }

  traffic() {
    return [];
  }

  async stats() {
    return undefined;
  }

  loads() {
    return [];
  }

  async listenersBefore() {
    return [...this.#serving];
  }

  async runningListeners() {
    return [...this.#serving];
  }

  #desiredListeners(): ReadonlySet<string> {
    return new Set([...this.#options.desired.keys()].flatMap((key) => [...this.#listenersOf(key)]));
  }

  #listenersOf(key: string): ReadonlySet<string> {
    const isMine = ({ engine, addresses }: Listener): boolean =>
      engine === this.#options.engine && addresses.length > 0;
    const listeners = this.#options.desired.get(key)?.listeners ?? [];
    return new Set(listeners.filter(isMine).map(({ name }) => name));
  }
}
