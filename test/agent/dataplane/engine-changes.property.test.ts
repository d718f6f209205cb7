import { deepEqual, ok } from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import test from 'ava';
import fc from 'fast-check';
import { Dataplanes } from '../../../agent/dataplane/dataplanes.ts';
import { EngineChanges } from '../../../agent/dataplane/engine-changes.ts';
import type { Engine, LoadBalancer } from '../../../agent/model/load-balancer.ts';
import { service } from '../../support/values/build.ts';
import { ModelDataplane } from '../../support/values/model-dataplane.ts';
import { loadBalancerOf, translated } from '../../support/values/translated.ts';

const KEYS = ['default/a', 'default/b'] as const;

/** What can happen between two turns of the event loop. */
const step = fc.oneof(
  fc.record({ kind: fc.constant('desire' as const), key: fc.constantFrom(...KEYS), isKernel: fc.boolean() }),
  fc.record({ kind: fc.constant('begin' as const), isKernel: fc.boolean() }),
  fc.record({ kind: fc.constant('end' as const), isKernel: fc.boolean(), isDone: fc.boolean() }),
  fc.record({ kind: fc.constant('late' as const), isLate: fc.boolean() }),
  fc.record({ kind: fc.constant('answer' as const), isAccepted: fc.boolean() }),
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

const served = Object.fromEntries(
  KEYS.map((key) => [
    key,
    loadBalancerOf(translated([service({ name: key.slice('default/'.length) })]), key),
  ]),
);

function withEngine(key: string, engine: Engine): LoadBalancer {
  const loadBalancer = served[key];
  if (loadBalancer === undefined) throw new Error(key);
  return { ...loadBalancer, listeners: loadBalancer.listeners.map((each) => ({ ...each, engine })) };
}

/** Two dataplanes and the agent's loop, with both load balancers served by HAProxy. */
class Rig {
  readonly #desired = new Map<string, LoadBalancer>();
  readonly #due = new Map<string, LoadBalancer | undefined>();
  readonly #all: Dataplanes<never>;
  readonly haproxy: ModelDataplane;
  readonly kernel: ModelDataplane;
  #isBusy = false;
  #wasServed: ReadonlySet<string> = new Set();

  constructor() {
    const changes = new EngineChanges(this.#desired);
    const replan = (keys: Iterable<string>): void => {
      for (const key of keys) this.#due.set(key, this.#due.get(key));
    };
    const part = (engine: Engine) =>
      new ModelDataplane({
        engine,
        desired: changes.viewOf(engine),
        hasCommands: engine === 'kernel',
        replan,
      });
    [this.haproxy, this.kernel] = [part('haproxy'), part('kernel')];
    this.#all = new Dataplanes(
      this.#desired,
      changes,
      { engine: 'haproxy', dataplane: this.haproxy },
      { engine: 'kernel', dataplane: this.kernel },
    );
  }

  async take(each: Step): Promise<void> {
    const of = 'isKernel' in each && each.isKernel ? this.kernel : this.haproxy;
    if (each.kind === 'desire')
      this.#due.set(each.key, withEngine(each.key, each.isKernel ? 'kernel' : 'haproxy'));
    if (each.kind === 'begin') of.begin();
    if (each.kind === 'end') of.end(each.isDone);
    if (each.kind === 'late') this.kernel.isLate = each.isLate;
    if (each.kind === 'answer') this.kernel.answer(each.isAccepted);
    await this.#turn();
  }

  /** All that is under way ends well. */
  async quiet(): Promise<void> {
    await this.take({ kind: 'late', isLate: false });
    for (let round = 0; round < 6; round++) {
      await this.take({ kind: 'answer', isAccepted: true });
      for (const isKernel of [true, false]) {
        await this.take({ kind: 'end', isKernel, isDone: true });
        await this.take({ kind: 'begin', isKernel });
        await this.take({ kind: 'end', isKernel, isDone: true });
      }
    }
  }

  /** By the engine that is desired, and by no other. */
  isAtRest(key: string): boolean {
    const [listener] = this.#desired.get(key)?.listeners ?? [];
    if (listener === undefined) return false;
    const isKernel = listener.engine === 'kernel';
    return (
      this.kernel.serves(listener.name) === isKernel &&
      this.haproxy.serves(listener.name) === !isKernel &&
      this.#all.served(key) === this.#desired.get(key)
    );
  }

  async #turn(): Promise<void> {
    for (let turn = 0; turn < 4; turn++) {
      void this.#round();
      await setImmediate();
      this.#look();
    }
  }

  async #round(): Promise<void> {
    if (this.#isBusy || this.#due.size === 0) return;
    this.#isBusy = true;
    const keys = [...this.#due.keys()];
    for (const [key, value] of this.#due) if (value !== undefined) this.#desired.set(key, value);
    this.#due.clear();
    this.#all.follow(keys);
    const plans = this.#all.plan(keys);
    const served = KEYS.map((key) => this.#all.served(key));
    deepEqual(this.#all.plan(keys), plans, 'A plan changes nothing');
    deepEqual(
      KEYS.map((key) => this.#all.served(key)),
      served,
    );
    await this.#all.apply(plans);
    this.#isBusy = false;
  }

  #look(): void {
    const now = new Set(
      [...this.#desired.values()]
        .flatMap(({ listeners }) => listeners.map(({ name }) => name))
        .filter((name) => this.haproxy.serves(name) || this.kernel.serves(name)),
    );
    for (const name of this.#wasServed) ok(now.has(name), `Nothing serves ${name}`);
    this.#wasServed = now;
  }
}

test('A listener that changes its engine is served at each moment, whatever else happens, and by the desired one at last', async (t) => {
  const property = fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60 }), async (steps) => {
    const rig = new Rig();
    for (const key of KEYS) await rig.take({ kind: 'desire', key, isKernel: false });
    await rig.quiet();
    for (const each of steps) await rig.take(each);
    await rig.quiet();
    for (const key of KEYS) ok(rig.isAtRest(key), `${key} is not at rest`);
  });
  await t.notThrowsAsync(fc.assert(property, { numRuns: 300 }));
});
