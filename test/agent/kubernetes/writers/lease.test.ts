import test from 'ava';
import type { ApiRequest } from '../../../../agent/kubernetes/api/kubernetes-api.ts';
import { Lease, type LeaseOptions } from '../../../../agent/kubernetes/writers/lease.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';
import { FakeApi, refusal } from '../../../support/kube/fake-api.ts';
import { silentLog } from '../../../support/values/silent-log.ts';

const PATH = '/apis/coordination.k8s.io/v1/namespaces/headgate-system/leases/headgate';

function lease(api: FakeApi, clock: FakeClock, identity: string, more: Partial<LeaseOptions> = {}) {
  const told: boolean[] = [];
  const one = new Lease({
    api,
    clock,
    log: silentLog(),
    namespace: 'headgate-system',
    name: 'headgate',
    identity,
    onLeader: (isLeader) => told.push(isLeader),
    random: () => 0.5,
    ...more,
  });
  one.start();
  return { lease: one, told };
}

test('Lease creates a missing Lease, and leads', async (t) => {
  const [api, clock] = [new FakeApi(), new FakeClock()];
  const a = lease(api, clock, 'a');
  t.false(a.lease.isLeader);
  await clock.advance(0);
  t.true(a.lease.isLeader);
  t.deepEqual(a.told, [true]);
  const { spec } = api.objects.get(PATH);
  t.is(spec.holderIdentity, 'a');
  t.is(spec.leaseDurationSeconds, 15);
  t.regex(spec.renewTime, /^2026-11-20T19:00:\d\d\.\d{6}Z$/);
});

test('Lease is barred while the API server refuses it; a missing answer changes nothing', async (t) => {
  const [api, clock] = [new FakeApi(), new FakeClock()];
  api.fault = () => {
    throw new Error('cut');
  };
  const told: boolean[] = [];
  const { lease: one } = lease(api, clock, 'a', { onBarred: () => told.push(one.isBarred) });
  await clock.advance(0);
  t.deepEqual([one.isBarred, told], [false, []]);
  api.fault = () => refusal(403, 'Forbidden');
  await clock.advance(5_000);
  t.deepEqual([one.isBarred, told], [true, [true]]);
  api.fault = () => {
    throw new Error('cut');
  };
  await clock.advance(5_000);
  t.true(one.isBarred);
  api.fault = () => undefined;
  await clock.advance(5_000);
  t.deepEqual([one.isBarred, one.isLeader, told], [false, true, [true, false]]);
});

test('Lease renews in time and keeps its acquireTime', async (t) => {
  const [api, clock] = [new FakeApi(), new FakeClock()];
  const a = lease(api, clock, 'a');
  await clock.advance(0);
  const before = api.objects.get(PATH).spec;
  await clock.advance(60_000);
  const { spec } = api.objects.get(PATH);
  t.true(a.lease.isLeader);
  t.deepEqual(a.told, [true]);
  t.is(spec.acquireTime, before.acquireTime);
  t.is(spec.leaseTransitions, 0);
  t.true(spec.renewTime > before.renewTime);
});

// Conformance: coordination.k8s.io/v1 Lease
test('Lease passes to the other agent when the leader is silent for its duration', async (t) => {
  const [api, clock] = [new FakeApi(), new FakeClock()];
  const dead = { value: false };
  const a = lease(api, clock, 'a');
  await clock.advance(0);
  const b = lease(api, clock, 'b');
  await clock.advance(30_000);
  t.false(b.lease.isLeader);
  t.is(b.lease.holder, 'a');
  api.fault = (request) => {
    if (dead.value && isFrom('a')(request)) throw new Error('cut');
    return undefined;
  };
  dead.value = true;
  let both = false;
  for (let passed = 0; passed < 20_000 && !b.lease.isLeader; passed += 100) {
    await clock.advance(100);
    both ||= a.lease.isLeader && b.lease.isLeader;
  }
  t.true(b.lease.isLeader);
  t.false(both);
  t.deepEqual(a.told, [true, false]);
  t.is(api.objects.get(PATH).spec.leaseTransitions, 1);
});

// Conformance: coordination.k8s.io/v1 Lease
test('Lease does not pass to another agent because of a wrong clock', async (t) => {
  const api = new FakeApi();
  const [clock, wrong] = [new FakeClock(), new FakeClock()];
  wrong.epoch += 5 * 3_600_000;
  const a = lease(api, clock, 'a');
  await clock.advance(0);
  const b = lease(api, wrong, 'b');
  for (let passed = 0; passed < 40_000; passed += 1_000) {
    await clock.advance(1_000);
    await wrong.advance(1_000);
  }
  t.true(a.lease.isLeader);
  t.false(b.lease.isLeader);
});

// Conformance: coordination.k8s.io/v1 Lease
test('Lease ends the lead at the renewal deadline, even while a request hangs', async (t) => {
  const [api, clock] = [new FakeApi(), new FakeClock()];
  const a = lease(api, clock, 'a');
  await clock.advance(0);
  api.fault = () => new Promise(() => {});
  await clock.advance(9_999);
  t.true(a.lease.isLeader);
  await clock.advance(2);
  t.false(a.lease.isLeader);
  t.deepEqual(a.told, [true, false]);
});

test('isLeader is false at once after the event loop was blocked beyond the deadline', async (t) => {
  const [api, clock] = [new FakeApi(), new FakeClock()];
  const a = lease(api, clock, 'a');
  await clock.advance(0);
  clock.hang(10_001);
  t.false(a.lease.isLeader);
  t.deepEqual(a.told, [true]);
});

test('Lease counts a renewal from its request, not from its answer', async (t) => {
  const [api, clock] = [new FakeApi(), new FakeClock()];
  const a = lease(api, clock, 'a');
  await clock.advance(0);
  const late = Promise.withResolvers<undefined>();
  api.fault = (request) => (request.method === 'PUT' ? late.promise : undefined);
  await clock.advance(8_000);
  api.fault = () => new Promise(() => {});
  late.resolve(undefined);
  await clock.advance(3_900);
  t.true(a.lease.isLeader);
  await clock.advance(200);
  t.false(a.lease.isLeader);
});

// Conformance: coordination.k8s.io/v1 Lease
test('Lease reads the record after a conflict, and respects another holder until it is silent', async (t) => {
  const [api, clock] = [new FakeApi(), new FakeClock()];
  const a = lease(api, clock, 'a');
  await clock.advance(0);
  api.put(PATH, { metadata: { name: 'headgate' }, spec: { holderIdentity: 'b', leaseDurationSeconds: 15 } });
  await clock.advance(2_000);
  t.false(a.lease.isLeader, 'at once, not when the deadline is over');
  t.is(a.lease.holder, 'b');
  await clock.advance(14_000);
  t.false(a.lease.isLeader);
  await clock.advance(4_000);
  t.true(a.lease.isLeader, 'b was silent for longer than its duration');
});

test('Lease continues after a renewal whose answer was lost', async (t) => {
  const [api, clock] = [new FakeApi(), new FakeClock()];
  const a = lease(api, clock, 'a');
  await clock.advance(0);
  api.fault = (request) => {
    if (request.method !== 'PUT') return undefined;
    api.carryOut(request);
    api.fault = () => undefined;
    throw new Error('The connection was closed');
  };
  await clock.advance(30_000);
  t.true(a.lease.isLeader);
  t.deepEqual(a.told, [true]);
});

test('close() releases the Lease even after a lost answer, and another agent takes it at once', async (t) => {
  const [api, clock] = [new FakeApi(), new FakeClock()];
  const a = lease(api, clock, 'a');
  const b = lease(api, clock, 'b');
  await clock.advance(3_000);
  t.true(a.lease.isLeader);
  api.put(PATH, api.objects.get(PATH));
  await a.lease.close();
  t.false(a.lease.isLeader);
  t.deepEqual(a.told, [true, false]);
  t.is(api.objects.get(PATH).spec.holderIdentity, undefined);
  await clock.advance(2_500);
  t.true(b.lease.isLeader);
});

test('close() writes nothing if the agent does not lead', async (t) => {
  const [api, clock] = [new FakeApi(), new FakeClock()];
  lease(api, clock, 'a');
  await clock.advance(0);
  const b = lease(api, clock, 'b');
  await clock.advance(3_000);
  await b.lease.close();
  t.deepEqual(b.told, []);
  t.is(api.objects.get(PATH).spec.holderIdentity, 'a');
});

test('Lease reports a refusal as its fault, and continues to try', async (t) => {
  const [api, clock] = [new FakeApi(), new FakeClock()];
  api.fault = () => refusal(403, 'Forbidden');
  const a = lease(api, clock, 'a');
  await clock.advance(5_000);
  t.false(a.lease.isLeader);
  t.regex(a.lease.fault, /403 Forbidden/);
  api.fault = () => undefined;
  await clock.advance(3_000);
  t.true(a.lease.isLeader);
  t.is(a.lease.fault, '');
});

test('Lease reports a missing namespace as its fault', async (t) => {
  const [api, clock] = [new FakeApi(), new FakeClock()];
  api.fault = () => refusal(404, 'NotFound');
  const a = lease(api, clock, 'a');
  await clock.advance(0);
  t.regex(a.lease.fault, /404 NotFound/);
});

test('Lease is taken at once by the same identity after a restart', async (t) => {
  const [api, clock] = [new FakeApi(), new FakeClock()];
  lease(api, clock, 'a');
  await clock.advance(0);
  const again = lease(api, clock, 'a');
  await clock.advance(0);
  t.true(again.lease.isLeader);
  t.is(api.objects.get(PATH).spec.leaseTransitions, 0);
});

test('Lease passes from an unfit agent to another one, and stays if there is none', async (t) => {
  const [api, clock] = [new FakeApi(), new FakeClock()];
  const fit = { a: true, b: true };
  const a = lease(api, clock, 'a', { isFit: () => fit.a });
  await clock.advance(0);
  const b = lease(api, clock, 'b', { isFit: () => fit.b });
  await clock.advance(3_000);
  fit.a = false;
  await clock.advance(5_000);
  t.deepEqual([a.lease.isLeader, b.lease.isLeader], [false, true]);
  await clock.advance(60_000);
  t.deepEqual([a.told, b.told], [[true, false], [true]]);

  await b.lease.close();
  await clock.advance(14_000);
  t.false(a.lease.isLeader);
  await clock.advance(6_000);
  t.true(a.lease.isLeader);
  // No other agent takes the Lease: it is offered once only.
  await clock.advance(60_000);
  t.deepEqual(a.told, [true, false, true]);
});

/** Requests that write a holder, or that a test lets only one of them make. */
function isFrom(identity: string): (request: ApiRequest) => boolean {
  return ({ body }) =>
    (body as { spec?: { holderIdentity?: string } } | undefined)?.spec?.holderIdentity === identity;
}
