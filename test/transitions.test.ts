// Transitions: transitions/*.txt hold manifests before, manifests after, and the runtime commands for HAProxy 2.6 that
// lead from one to the other, one per line, with `reload: reason` if commands are not enough.
// A real HAProxy then carries out each transition: its state must be the recorded state and the desired state.

import ava, { type ExecutionContext } from 'ava';
import { applyPlans } from '../agent/haproxy/apply.ts';
import type { Worker } from '../agent/haproxy/booted-worker.ts';
import { AclIds } from '../agent/haproxy/config/acl-ids.ts';
import { inFileOrder } from '../agent/haproxy/config/config-text.ts';
import { backendsOf, hasSection } from '../agent/haproxy/config/listener-config.ts';
import { type HaproxyPlan, planLoadBalancer } from '../agent/haproxy/plan.ts';
import { readRunning } from '../agent/haproxy/readback.ts';
import { tablesOf } from '../agent/haproxy/routes/tables.ts';
import { Running } from '../agent/haproxy/running.ts';
import { commandText } from '../agent/haproxy/socket/command-text.ts';
import { parseServersState } from '../agent/haproxy/socket/servers-state.ts';
import { capabilitiesOf, parseVersion } from '../agent/haproxy/socket/version.ts';
import type { LoadBalancer } from '../agent/model/load-balancer.ts';
import { requires } from './support/basics/requirements.ts';
import { effectOf } from './support/haproxy/effect.ts';
import { Loopback, startRendered } from './support/haproxy/rendered-haproxy.ts';
import { clusterOf } from './support/values/build.ts';
import { type CaseFile, isUpdating, readCases, writeCase } from './support/values/case-file.ts';
import { objectsOf, settingsOf } from './support/values/manifests.ts';
import { FollowedState } from './support/values/translated.ts';

const test = requires(ava, { haproxy: true });

const OLDEST = capabilitiesOf(parseVersion('2.6.12'));

interface Transition {
  readonly before: ReadonlyMap<string, LoadBalancer>;
  readonly after: ReadonlyMap<string, LoadBalancer>;
}

/** Changes the objects of one model as the loop does, so that the result may depend on the state before. */
function transition(manifestsBefore: string, manifestsAfter: string): Transition {
  const settings = settingsOf(manifestsBefore);
  const objects = objectsOf(manifestsBefore);
  const state = new FollowedState(clusterOf(objects), settings);
  const { desired } = state;
  state.translate(state.cluster.ownerKeys());
  const before = new Map(desired.loadBalancers);
  const upserted = objectsOf(manifestsAfter);
  const isStillThere = new Set(upserted.map(({ kind, key }) => `${kind} ${key}`));
  const removed = objects.filter(({ kind, key }) => !isStillThere.has(`${kind} ${key}`));
  state.apply({ upserted, removed });
  return { before, after: desired.loadBalancers };
}

/** `folder`: of the files of the maps. */
function plansOf({ before, after }: Transition, running: Running, folder = '/'): readonly HaproxyPlan[] {
  const keys = [...new Set([...before.keys(), ...after.keys()])].sort();
  const routes = { folder, tablesOf, isDue: () => false };
  const spares = running.spares.offer();
  return keys.map((key) =>
    planLoadBalancer({ key, running, before: before.get(key), after: after.get(key), spares, routes }),
  );
}

function planText(plans: readonly HaproxyPlan[]): string {
  const lines = plans.flatMap(({ commands }) => commands.map((command) => commandText(command, OLDEST)));
  const reloads = plans.flatMap(({ reload }) => (reload === undefined ? [] : [`reload: ${reload}`]));
  return [...lines, ...reloads].map((line) => `${line}\n`).join('');
}

function namesOf(loadBalancers: ReadonlyMap<string, LoadBalancer>): string[] {
  return [...loadBalancers.values()].flatMap(({ listeners }) =>
    listeners
      .filter(hasSection)
      .flatMap(backendsOf)
      .map(({ name }) => name),
  );
}

const carriedOut = test.macro(async (t, file: CaseFile) => {
  const [manifestsBefore = '', manifestsAfter = '', expected = ''] = file.parts;
  const asWritten = transition(manifestsBefore, manifestsAfter);
  const plan = planText(plansOf(asWritten, Running.booted(asWritten.before.values(), new AclIds().idOf)));
  if (isUpdating) await writeCase(file, [manifestsBefore, manifestsAfter, plan]);
  else t.is(plan, expected);

  const { before, after } = await onLoopback(asWritten);
  const haproxy = await startRendered(t, inFileOrder(before));
  const { worker, context } = haproxy;
  const plans = plansOf({ before, after }, worker.running, context.routes);
  const outcome = await applyPlans(
    worker,
    plans,
    () => t.fail('No load balancer must be planned twice') as never,
  );
  t.like(outcome, { refused: [], repaired: [], beyondRepair: [], lost: undefined });
  t.deepEqual(
    outcome.acknowledged,
    plans.flatMap(({ commands }) => commands),
  );

  const recorded = worker.running;
  const observed = await readRunning(worker.runtime, inFileOrder(before), true, context.aclId);
  for (const name of namesOf(before))
    t.deepEqual(stateOf(observed, name), stateOf(recorded, name), 'HAProxy runs the recorded state');
  const booted = Running.booted(after.values(), context.aclId);
  const inBoth = namesOf(before).filter((name) => booted.get(name) !== undefined);
  t.deepEqual(servingOf(observed, inBoth), servingOf(booted, inBoth), 'HAProxy serves the desired state');
  const isReloaded = plans.some(({ reload }) => reload !== undefined);
  if (!isReloaded) {
    await rowsFollow(t, worker, { before, after }, context.routes);
    t.deepEqual(effectOf(observed, inBoth), effectOf(booted, inBoth));
    await checksAreOn(t, worker, after, inBoth);
  }

  const fresh = await haproxy.reload(inFileOrder(after));
  const afterReload = await readRunning(fresh.runtime, inFileOrder(after), true, context.aclId);
  for (const name of namesOf(after))
    t.deepEqual(stateOf(afterReload, name), stateOf(fresh.running, name), 'A new worker runs the file');
});

/** Rows that waited for a pool follow with the next plan; after that nothing is to be done. */
async function rowsFollow(
  t: ExecutionContext,
  worker: Worker,
  changed: Transition,
  folder: string,
): Promise<void> {
  const next = plansOf(changed, worker.running, folder);
  const outcome = await applyPlans(worker, next, () => t.fail('No row must be planned twice') as never);
  t.like(outcome, { refused: [], repaired: [], beyondRepair: [], lost: undefined });
  t.is(planText(plansOf(changed, worker.running, folder)), '', 'Nothing is left to be done');
}

async function onLoopback({ before, after }: Transition): Promise<Transition> {
  const loopback = new Loopback();
  const moved = async (loadBalancers: ReadonlyMap<string, LoadBalancer>) => {
    const bindable = new Map<string, LoadBalancer>();
    for (const [key, each] of loadBalancers) bindable.set(key, await loopback.bindable(each));
    return bindable;
  };
  return { before: await moved(before), after: await moved(after) };
}

/** The recorded state of a listener, in an order that does not depend on history. */
function stateOf(running: Running, name: string) {
  const { servers = new Map(), allowed = [] } = running.get(name) ?? {};
  return {
    servers: [...servers].sort(([a], [b]) => (a < b ? -1 : 1)),
    allowed: allowed.map(({ id, cidrs }) => ({ id, cidrs: [...cidrs].sort() })),
  };
}

function servingOf(running: Running, names: readonly string[]) {
  return effectOf(running, names).map(({ name, serving }) => ({ name, serving }));
}

/** If the pool has a monitor, each server is probed, even a server that was just added. */
async function checksAreOn(
  t: ExecutionContext,
  { runtime }: Worker,
  loadBalancers: ReadonlyMap<string, LoadBalancer>,
  names: readonly string[],
): Promise<void> {
  const rows = [...parseServersState(await runtime.ask('show servers state'))];
  for (const { name, pool } of [...loadBalancers.values()].flatMap(({ listeners }) => listeners)) {
    if (!names.includes(name) || pool.monitor === undefined) continue;
    for (const member of pool.members) {
      const row = rows.find(({ backend, server }) => backend === name && server === member.name);
      t.is(row?.check, 'on', `${name} ${member.name}`);
    }
  }
}

for (const file of readCases(new URL('transitions/', import.meta.url)))
  test(`Transition: ${file.title}`, carriedOut, file);
