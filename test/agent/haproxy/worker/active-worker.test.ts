import { setImmediate as turn } from 'node:timers/promises';
import test from 'ava';
import { HeadgateError } from '../../../../agent/base/errors.ts';
import type { BootedWorker } from '../../../../agent/haproxy/booted-worker.ts';
import { AclIds } from '../../../../agent/haproxy/config/acl-ids.ts';
import { GRACE_MS } from '../../../../agent/haproxy/config/render-context.ts';
import { Running } from '../../../../agent/haproxy/running.ts';
import { ActiveWorker, type ActiveWorkerOptions } from '../../../../agent/haproxy/worker/active-worker.ts';
import type { LoadBalancer } from '../../../../agent/model/load-balancer.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';
import { service, slice } from '../../../support/values/build.ts';
import { silentLog } from '../../../support/values/silent-log.ts';
import { loadBalancerOf, translated } from '../../../support/values/translated.ts';

const KEY = 'default/web';

/** default/web with these members. */
function web(...endpoints: string[]): LoadBalancer {
  return loadBalancerOf(translated([service(), slice({ endpoints })]));
}

/** `closed`: why its connection ends. */
function workerOf(
  pid: number,
  loadBalancers: readonly LoadBalancer[],
  closed: Promise<unknown> = new Promise(() => undefined),
): BootedWorker {
  const aclIds = new AclIds();
  const runtime = { worker: { pid }, closed, close: () => undefined };
  const running = Running.booted(loadBalancers, aclIds.idOf);
  const booted = new Map(loadBalancers.map((each) => [each.key, each]));
  return { runtime, running, booted, structure: String(pid), bound: undefined } as unknown as BootedWorker;
}

/** What is asked to be planned is noted down, a list for each time. */
function serving(desired: readonly LoadBalancer[]) {
  const planned: string[][] = [];
  const clock = new FakeClock();
  const options = {
    masterSocket: '/nonexistent',
    settings: () => ({ haproxySupervisor: 'agent', drainTimeout: 1_000, hardStopAfter: 1_000 }),
    desired: new Map(desired.map((each) => [each.key, each])),
    config: {
      persister: { catchUp: () => undefined },
      quarantine: { effective: (each: LoadBalancer) => each },
      aclIds: new AclIds(),
    },
    statistics: { retire: () => undefined },
    hooks: {
      isReloading: () => true,
      replan: (keys: Iterable<string>) => planned.push([...keys]),
      onTaken: () => undefined,
      onKnown: () => undefined,
    },
    log: silentLog(),
  } as unknown as ActiveWorkerOptions;
  return { serving: new ActiveWorker(options, clock), planned, clock };
}

test('Changes during a reload are planned for the new worker before all other load balancers', async (t) => {
  const [old, now] = [web('10.0.0.1'), web('10.0.0.2')];
  const { serving: own, planned } = serving([now]);
  own.take(workerOf(1, [old]));
  planned.length = 0;
  own.changedDuringReload([KEY]);
  own.take(workerOf(2, [old]));
  t.deepEqual(planned, [[KEY]]);
  await turn();
  t.deepEqual(planned.flat(), [KEY, KEY]);
  own.close();
});

test('A load balancer that the new worker lacks is planned, also without a change', async (t) => {
  const [old, now] = [web('10.0.0.1'), web('10.0.0.2')];
  const { serving: own, planned } = serving([now]);
  own.take(workerOf(1, [old]));
  planned.length = 0;
  own.take(workerOf(2, [old]));
  await turn();
  t.deepEqual(planned.flat(), [KEY]);
  own.close();
});

test('A replaced worker counts as draining while it may take connections', async (t) => {
  const { serving: own, clock } = serving([]);
  const [first, second] = [workerOf(1, []), workerOf(2, [])];
  own.take(first);
  t.is(own.draining, undefined);
  own.take(second);
  t.is(own.draining, first);
  await clock.advance(GRACE_MS);
  t.is(own.draining, first);
  await clock.advance(1);
  t.is(own.draining, undefined);
  own.close();
});

for (const [code, isBetween] of [
  ['RUNTIME_CLOSED', true],
  ['RUNTIME_TIMEOUT', false],
] as const)
  test(`A worker that is lost during a reload by ${code} is ${isBetween ? '' : 'not '}about to be replaced`, async (t) => {
    const { serving: own } = serving([]);
    const { promise, resolve } = Promise.withResolvers<unknown>();
    own.take(workerOf(1, [], promise));
    t.false(own.isBetween);
    resolve(new HeadgateError(code, 'It has gone'));
    await turn();
    t.is(own.worker, undefined);
    t.is(own.isBetween, isBetween);
    own.take(workerOf(2, []));
    t.false(own.isBetween);
    own.close();
  });

test('unlessReplaced() does not wait for the answer of a replaced worker', async (t) => {
  const { serving: own } = serving([]);
  own.take(workerOf(1, []));
  const answer = own.unlessReplaced(new Promise(() => undefined));
  own.take(workerOf(2, []));
  t.is(await answer, undefined);
  t.is(await own.unlessReplaced(Promise.resolve('told')), 'told');
  own.close();
});
