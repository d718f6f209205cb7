import test from 'ava';
import type { ApiRequest } from '../../../../agent/kubernetes/api/kubernetes-api.ts';
import { readCurrentService } from '../../../../agent/kubernetes/current-service.ts';
import { type DesiredService, FINALIZER } from '../../../../agent/kubernetes/writers/service-patch.ts';
import type { DesiredStatus } from '../../../../agent/kubernetes/writers/service-status.ts';
import {
  StatusWriter,
  type StatusWriterOptions,
} from '../../../../agent/kubernetes/writers/status-writer.ts';
import { FakeClock, settled } from '../../../support/basics/fake-clock.ts';
import { FakeApi, type Json, refusal } from '../../../support/kube/fake-api.ts';
import { silentLog } from '../../../support/values/silent-log.ts';

const PATH = '/api/v1/namespaces/default/services/web';

test('StatusWriter writes once to the status subresource, guarded by UID and version', async (t) => {
  const { api, writer, clock } = start();
  writer.set('default/web', serve('192.0.2.10'));
  await clock.advance(0);
  const [patch, ...more] = patches(api);
  t.deepEqual(more, []);
  t.is(patch?.path, `${PATH}/status`);
  t.is(patch?.contentType, 'application/merge-patch+json');
  t.deepEqual((patch as Json).body.metadata, {
    uid: 'uid-web',
    resourceVersion: '101',
    finalizers: [FINALIZER],
  });
  t.deepEqual(ipsOf(api), ['192.0.2.10']);
  t.is(writer.waiting, 0);
});

test('StatusWriter does not write an unchanged status', async (t) => {
  const { api, writer, clock } = start();
  for (let i = 0; i < 5; i++) {
    writer.set('default/web', serve('192.0.2.10'));
    await clock.advance(10_000);
  }
  t.is(patches(api).length, 1);
});

test('StatusWriter sends no request before the agent leads, and all of them then', async (t) => {
  const { api, writer, clock, lead } = start({ isLeading: false });
  writer.set('default/web', serve('192.0.2.10'));
  await clock.advance(60_000);
  t.deepEqual(api.requests, []);
  lead(true);
  await clock.advance(0);
  t.deepEqual(ipsOf(api), ['192.0.2.10']);
});

test('StatusWriter does not write if the lead ends during the read', async (t) => {
  const { api, writer, clock, lead } = start({ hasWatch: false });
  const answered = Promise.withResolvers<undefined>();
  api.fault = ({ method }) => (method === 'GET' ? answered.promise : undefined);
  writer.set('default/web', serve('192.0.2.10'));
  await clock.advance(0);
  t.is(api.requests.length, 1);
  lead(false);
  answered.resolve(undefined);
  await clock.advance(60_000);
  t.deepEqual(patches(api), []);
});

test('StatusWriter reads a Service that the watch does not show', async (t) => {
  const { api, writer, clock } = start({ hasWatch: false });
  writer.set('default/web', serve('192.0.2.10'));
  await clock.advance(0);
  t.deepEqual(
    api.requests.map(({ method }) => method),
    ['GET', 'PATCH'],
  );
  writer.set('default/web', serve('192.0.2.10'));
  await clock.advance(60_000);
  t.is(api.requests.length, 2, 'nothing has moved, nothing is asked');
});

test('StatusWriter reads again after a conflict, and keeps what the other writer wrote', async (t) => {
  const { api, writer, clock } = start();
  const theirs = { type: 'example.org/Probed', status: 'True', reason: 'Any', message: '' };
  api.fault = ({ method }) => {
    if (method !== 'PATCH') return undefined;
    api.fault = () => undefined;
    const service = api.objects.get(PATH);
    api.put(PATH, { ...service, status: { ...service.status, conditions: [theirs] } });
    return undefined;
  };
  writer.set('default/web', serve('192.0.2.10'));
  await clock.advance(0);
  t.deepEqual(
    api.requests.map(({ method }) => method),
    ['PATCH', 'GET', 'PATCH'],
  );
  t.deepEqual(ipsOf(api), ['192.0.2.10']);
  t.is(api.objects.get(PATH).status.conditions.length, 2);
});

test('StatusWriter backs off after many conflicts in a row', async (t) => {
  const { api, writer, clock } = start();
  api.fault = ({ method }) => (method === 'PATCH' ? refusal(409, 'Conflict') : undefined);
  writer.set('default/web', serve('192.0.2.10'));
  await clock.advance(60_000);
  t.true(patches(api).length > 6);
  t.true(patches(api).length < 16, String(patches(api).length));
  api.fault = () => undefined;
  await clock.advance(60_000);
  t.deepEqual(ipsOf(api), ['192.0.2.10']);
});

// Conformance: a Service that is deleted and created again
test('StatusWriter does not write the old status to a Service that was created again', async (t) => {
  const { api, writer, clock, watch } = start();
  api.put(PATH, {
    ...api.objects.get(PATH),
    metadata: { namespace: 'default', name: 'web', uid: 'uid-new' },
  });
  writer.set('default/web', serve('192.0.2.10'));
  await clock.advance(60_000);
  watch();
  await clock.advance(60_000);
  t.deepEqual(ipsOf(api), []);
  t.is(writer.waiting, 0);
  writer.set('default/web', serve('192.0.2.11', { uid: 'uid-new' }));
  await clock.advance(0);
  t.deepEqual(ipsOf(api), ['192.0.2.11']);
});

test('StatusWriter writes a new Service although the watch still shows its predecessor', async (t) => {
  const { api, writer, clock } = start();
  api.put(PATH, {
    ...api.objects.get(PATH),
    metadata: { namespace: 'default', name: 'web', uid: 'uid-new' },
  });
  writer.set('default/web', serve('192.0.2.11', { uid: 'uid-new' }));
  await clock.advance(0);
  t.deepEqual(ipsOf(api), ['192.0.2.11']);
});

test('StatusWriter writes only the last of the changes that come during a write', async (t) => {
  const { api, writer, clock } = start();
  const answered = Promise.withResolvers<undefined>();
  api.fault = () => answered.promise;
  writer.set('default/web', serve('192.0.2.10'));
  await clock.advance(0);
  for (let last = 11; last < 20; last++) writer.set('default/web', serve(`192.0.2.${last}`));
  await clock.advance(0);
  t.is(patches(api).length, 1);
  api.fault = () => undefined;
  answered.resolve(undefined);
  await clock.advance(1_000);
  t.is(patches(api).length, 2);
  t.deepEqual(ipsOf(api), ['192.0.2.19']);
});

test('StatusWriter compares with its own write until the watch shows it', async (t) => {
  const { api, writer, clock, watch } = start();
  writer.set('default/web', serve('192.0.2.10'));
  await clock.advance(1_000);
  watch();
  writer.set('default/web', serve('192.0.2.11'));
  await clock.advance(1_000);
  writer.set('default/web', serve('192.0.2.10'));
  await clock.advance(1_000);
  t.deepEqual(ipsOf(api), ['192.0.2.10']);
  t.is(patches(api).length, 3);
});

// Conformance: a status that another writer changes
test('StatusWriter restores its part of the status when the watch shows a change of it', async (t) => {
  const { api, writer, clock, watch } = start();
  writer.set('default/web', serve('192.0.2.10'));
  await clock.advance(1_000);
  api.put(PATH, { ...api.objects.get(PATH), status: {} });
  watch();
  writer.observed('default/web');
  await clock.advance(1_000);
  t.deepEqual(ipsOf(api), ['192.0.2.10']);
  watch();
  writer.observed('default/web');
  await clock.advance(1_000);
  t.is(patches(api).length, 2);
});

test('StatusWriter writes many Services at its rate, after a burst', async (t) => {
  const { api, writer, clock } = start({ rate: 10, burst: 20 });
  const keys = Array.from({ length: 100 }, (_, index) => `default/web-${index}`);
  for (const key of keys) addService(api, key);
  for (const key of keys) writer.set(key, serve('192.0.2.10', { uid: `uid-${key.slice(8)}` }));
  await clock.advance(0);
  t.is(patches(api).length, 20);
  await clock.advance(4_000);
  t.is(patches(api).length, 60);
  await clock.advance(4_000);
  t.is(patches(api).length, 100);
});

test('StatusWriter checks unchanged Services without using its rate', async (t) => {
  const { api, writer, clock, lead } = start({ rate: 10, burst: 20 });
  const keys = Array.from({ length: 500 }, (_, index) => `default/web-${index}`);
  for (const key of keys) addService(api, key);
  for (const key of keys) writer.set(key, serve('192.0.2.10', { uid: `uid-${key.slice(8)}` }));
  await clock.advance(60_000);
  t.is(patches(api).length, 500);
  lead(false);
  lead(true);
  writer.set('default/web', serve('192.0.2.10'));
  await clock.advance(0);
  t.is(writer.waiting, 0);
  t.is(patches(api).length, 501);
});

test('StatusWriter waits as long as a 429 asks', async (t) => {
  const { api, writer, clock } = start();
  api.fault = () => refusal(429, 'TooManyRequests', { 'retry-after': '7' });
  writer.set('default/web', serve('192.0.2.10'));
  await clock.advance(6_900);
  t.is(api.requests.length, 1);
  t.regex(writer.fault, /429 TooManyRequests/);
  api.fault = () => undefined;
  await clock.advance(200);
  t.deepEqual(ipsOf(api), ['192.0.2.10']);
  t.is(writer.fault, '');
});

test('StatusWriter makes few attempts while the API server is away, and then writes the last status', async (t) => {
  const { api, writer, clock } = start();
  api.fault = () => {
    throw new Error('Cannot reach the API server');
  };
  writer.set('default/web', serve('192.0.2.10'));
  await clock.advance(300_000);
  t.true(api.requests.length < 20, String(api.requests.length));
  writer.set('default/web', serve('192.0.2.11'));
  api.fault = () => undefined;
  await clock.advance(31_000);
  t.deepEqual(ipsOf(api), ['192.0.2.11']);
});

test('StatusWriter does not repeat a status that the API server finds invalid', async (t) => {
  const { api, writer, clock } = start();
  api.fault = ({ method }) => (method === 'PATCH' ? refusal(422, 'Invalid') : undefined);
  writer.set('default/web', serve('192.0.2.10'));
  await clock.advance(600_000);
  writer.set('default/web', serve('192.0.2.10'));
  await clock.advance(600_000);
  t.is(patches(api).length, 1);
  t.regex(writer.fault, /422 Invalid/);
  writer.observed('default/web');
  await clock.advance(0);
  t.is(patches(api).length, 2);
});

test("StatusWriter waits for the dataplane's confirmation, then writes that there is none", async (t) => {
  const { api, writer, clock } = start();
  writer.set('default/web', serve('192.0.2.10', { isSettled: false }));
  await clock.advance(1_500);
  writer.set('default/web', serve('192.0.2.11', { isSettled: false }));
  t.deepEqual(patches(api), []);
  await clock.advance(600);
  t.is(patches(api).length, 1);
  const { api: second, writer: quick, clock: time } = start();
  quick.set('default/web', serve('192.0.2.10', { isSettled: false }));
  await time.advance(1);
  quick.set('default/web', serve('192.0.2.10'));
  await time.advance(0);
  t.is(patches(second).length, 1);
});

test('StatusWriter writes the first status with the finalizer, in one patch, once its address is stored', async (t) => {
  const { api, writer, clock } = start();
  writer.set('default/web', { kind: 'choosing', uid: 'uid-web' });
  await clock.advance(1_500);
  t.deepEqual(patches(api), []);
  writer.set('default/web', serve('192.0.2.10'));
  await clock.advance(0);
  t.is(patches(api).length, 1);
  t.deepEqual(ipsOf(api), ['192.0.2.10']);
  t.deepEqual(api.objects.get(PATH).metadata.finalizers, [FINALIZER]);
});

test('StatusWriter reports an address that is not stored in time', async (t) => {
  const { api, writer, clock } = start();
  writer.set('default/web', { kind: 'choosing', uid: 'uid-web' });
  await clock.advance(2_100);
  t.is(patches(api).length, 1);
  const [condition] = api.objects.get(PATH).status.conditions;
  t.like(condition, { type: 'headgate.io/IPAllocated', status: 'False', reason: 'Pending' });
});

test('The first status after the finalizer waits for nothing, and the next one for a quarter of a second', async (t) => {
  const { api, writer, clock } = start();
  const requested = writer.requestFinalizer('default/web', 'uid-web');
  await clock.advance(0);
  t.true(await requested);
  writer.set('default/web', serve('192.0.2.10'));
  await clock.advance(0);
  t.deepEqual(ipsOf(api), ['192.0.2.10']);
  writer.set('default/web', serve('192.0.2.11'));
  await clock.advance(249);
  t.deepEqual(ipsOf(api), ['192.0.2.10']);
  await clock.advance(1);
  t.deepEqual(ipsOf(api), ['192.0.2.11']);
  t.is(patches(api).length, 3);
});

test('requestFinalizer() is true once the Service has the finalizer, and false if it is gone', async (t) => {
  const { api, writer, clock } = start();
  const claimed = writer.requestFinalizer('default/web', 'uid-web');
  await clock.advance(0);
  t.true(await claimed);
  t.deepEqual(api.objects.get(PATH).metadata.finalizers, [FINALIZER]);
  const again = writer.requestFinalizer('default/web', 'uid-web');
  await clock.advance(1_000);
  t.true(await again);
  const gone = writer.requestFinalizer('default/gone', 'uid-gone');
  await clock.advance(1_000);
  t.false(await gone);
  t.is(patches(api).length, 1);
});

test('requestFinalizer() is true at once for a Service that has the finalizer', async (t) => {
  const { writer, clock, watch } = start();
  writer.set('default/web', serve('192.0.2.10'));
  await clock.advance(1_000);
  watch();
  const answers: boolean[] = [];
  void writer.requestFinalizer('default/web', 'uid-web').then((answer) => answers.push(answer));
  await clock.advance(0);
  t.deepEqual(answers, [true]);
});

test('requestFinalizer() is false when the lead is lost before the answer', async (t) => {
  const { api, writer, clock, lead } = start();
  api.fault = () => refusal(500, 'InternalError');
  const claimed = writer.requestFinalizer('default/web', 'uid-web');
  await clock.advance(0);
  lead(false);
  t.false(await claimed);
  t.false(await writer.requestFinalizer('default/web', 'uid-web'));
});

// Conformance: finalizer service.kubernetes.io/load-balancer-cleanup
test('StatusWriter releases a Service after the teardown, in one write', async (t) => {
  const { api, writer, clock, watch } = start();
  writer.set('default/web', serve('192.0.2.10'));
  await clock.advance(1_000);
  watch();
  writer.set('default/web', { kind: 'release', uid: 'uid-web', isTornDown: false });
  await clock.advance(100_000);
  t.is(patches(api).length, 1);
  writer.set('default/web', { kind: 'release', uid: 'uid-web', isTornDown: true });
  await clock.advance(0);
  t.is(patches(api).length, 2);
  t.deepEqual(api.objects.get(PATH).metadata.finalizers, []);
  t.deepEqual(api.objects.get(PATH).status, { loadBalancer: { ingress: [] }, conditions: [] });
});

test('StatusWriter releases again what another writer puts back before the answer to the release', async (t) => {
  const { api, writer, clock, watch } = start();
  writer.set('default/web', serve('192.0.2.10'));
  await clock.advance(1_000);
  watch();
  const { status } = api.objects.get(PATH);
  const answered = Promise.withResolvers<undefined>();
  api.fault = async (request) => {
    const response = api.carryOut(request);
    await answered.promise;
    return response;
  };
  writer.set('default/web', { kind: 'release', uid: 'uid-web', isTornDown: true });
  await clock.advance(0);
  api.put(PATH, { ...api.objects.get(PATH), status });
  watch();
  writer.observed('default/web');
  answered.resolve(undefined);
  await clock.advance(1_000);
  t.deepEqual(api.objects.get(PATH).status.conditions, []);
  t.is(writer.waiting, 0);
});

test('StatusWriter waits for the teardown of a release that comes during a conflict', async (t) => {
  const { api, writer, clock, watch } = start();
  writer.set('default/web', serve('192.0.2.10'));
  await clock.advance(1_000);
  watch();
  const answered = Promise.withResolvers<undefined>();
  api.fault = ({ method }) => (method === 'PATCH' ? refusal(409, 'Conflict') : answered.promise);
  writer.set('default/web', serve('192.0.2.11'));
  await clock.advance(1_000);
  t.deepEqual(
    api.requests.map(({ method }) => method),
    ['PATCH', 'PATCH', 'GET'],
  );
  api.fault = () => undefined;
  writer.set('default/web', { kind: 'release', uid: 'uid-web', isTornDown: false });
  answered.resolve(undefined);
  await clock.advance(100_000);
  t.deepEqual(api.objects.get(PATH).metadata.finalizers, [FINALIZER]);
  writer.set('default/web', { kind: 'release', uid: 'uid-web', isTornDown: true });
  await clock.advance(0);
  t.deepEqual(api.objects.get(PATH).metadata.finalizers, []);
  t.is(writer.waiting, 0);
});

test('requestFinalizer() is false after a release, which still waits for the teardown', async (t) => {
  const { api, writer, clock } = start();
  const answered = Promise.withResolvers<undefined>();
  api.fault = () => answered.promise;
  const claimed = writer.requestFinalizer('default/web', 'uid-web');
  await clock.advance(0);
  writer.set('default/web', { kind: 'release', uid: 'uid-web', isTornDown: false });
  t.false(await claimed);
  const before = patches(api).length;
  answered.resolve(undefined);
  await clock.advance(100_000);
  t.is(patches(api).length, before);
});

// Conformance: finalizer service.kubernetes.io/load-balancer-cleanup
test('StatusWriter releases a Service after two minutes without a confirmed teardown', async (t) => {
  const { api, writer, clock } = start();
  writer.set('default/web', serve('192.0.2.10'));
  await clock.advance(1_000);
  for (let passed = 0; passed < 119_000; passed += 7_000) {
    writer.set('default/web', { kind: 'release', uid: 'uid-web', isTornDown: false });
    await clock.advance(7_000);
  }
  await clock.advance(3_000);
  t.deepEqual(api.objects.get(PATH).metadata.finalizers, []);
});

test('set() with undefined forgets the Service, even during a wait', async (t) => {
  const { api, writer, clock } = start();
  writer.set('default/web', serve('192.0.2.10', { isSettled: false }));
  writer.set('default/web', undefined);
  await clock.advance(60_000);
  t.deepEqual(api.requests, []);
  t.is(writer.waiting, 0);
});

test('StatusWriter writes nothing for a Service that is forgotten during a conflict', async (t) => {
  const { api, writer, clock } = start();
  const answered = Promise.withResolvers<undefined>();
  api.fault = async ({ method }) => {
    await answered.promise;
    return method === 'PATCH' ? refusal(409, 'Conflict') : undefined;
  };
  writer.set('default/web', serve('192.0.2.10'));
  await clock.advance(0);
  writer.set('default/web', undefined);
  answered.resolve(undefined);
  await clock.advance(60_000);
  const before = api.requests.length;
  api.fault = () => undefined;
  writer.set('default/web', serve('192.0.2.10'));
  await clock.advance(1_000);
  // What the watch shows is good enough again: it is not asked for.
  t.deepEqual(
    api.requests.slice(before).map(({ method }) => method),
    ['PATCH'],
  );
});

test('onWritten() gets the Service before and after', async (t) => {
  const seen: string[][] = [];
  const { writer, clock } = start({
    onWritten: (before, after) => seen.push([before, after].map(({ ingress }) => ingress[0]?.ip ?? 'none')),
  });
  writer.set('default/web', serve('192.0.2.10'));
  await clock.advance(1_000);
  t.deepEqual(seen, [['none', '192.0.2.10']]);
});

test('close() waits for the write under way and begins no other', async (t) => {
  const { api, writer, clock } = start();
  addService(api, 'default/other');
  const answered = Promise.withResolvers<undefined>();
  api.fault = () => answered.promise;
  writer.set('default/web', serve('192.0.2.10'));
  await clock.advance(0);
  let isClosed = false;
  const closing = writer.close().then(() => {
    isClosed = true;
  });
  await settled();
  t.false(isClosed);
  answered.resolve(undefined);
  await closing;
  writer.set('default/other', serve('192.0.2.10', { uid: 'uid-other' }));
  await clock.advance(60_000);
  t.is(patches(api).length, 1);
});

/** A writer, its API server with the Service `default/web`, and a watch that shows what it last showed. */
function start({
  isLeading = true,
  hasWatch = true,
  ...more
}: { isLeading?: boolean; hasWatch?: boolean } & Partial<StatusWriterOptions> = {}) {
  const [api, clock] = [new FakeApi(), new FakeClock()];
  addService(api, 'default/web');
  let shown = new Map<string, Json>();
  const watch = () => {
    shown = new Map(api.objects);
  };
  watch();
  const state = { isLeading };
  const writer = new StatusWriter({
    api,
    clock,
    log: silentLog(),
    isLeader: () => state.isLeading,
    random: () => 1,
    currentService: (key) =>
      hasWatch ? readCurrentService(shown.get(pathOf(key)) ?? api.objects.get(pathOf(key))) : undefined,
    ...more,
  });
  const lead = (isLeader: boolean) => {
    state.isLeading = isLeader;
    writer.lead(isLeader);
  };
  if (isLeading) lead(true);
  return { api, clock, writer, watch, lead };
}

function addService(api: FakeApi, key: string): void {
  const [namespace, name] = key.split('/');
  api.put(pathOf(key), {
    kind: 'Service',
    metadata: { namespace, name, uid: `uid-${name}` },
    spec: { type: 'LoadBalancer' },
    status: { loadBalancer: {} },
  });
}

function pathOf(key: string): string {
  const [namespace, name] = key.split('/');
  return `/api/v1/namespaces/${namespace}/services/${name}`;
}

function patches(api: FakeApi): ApiRequest[] {
  return api.requests.filter(({ method }) => method === 'PATCH');
}

function ipsOf(api: FakeApi): string[] {
  return (api.objects.get(PATH).status.loadBalancer?.ingress ?? []).map(({ ip }: Json) => ip);
}

function serve(ip: string, { uid = 'uid-web', isSettled = true } = {}): DesiredService {
  const status: DesiredStatus = {
    ingress: [{ ip, ipMode: 'Proxy', ports: [{ port: 80, protocol: 'TCP' }], onlyIfPublished: false }],
    conditions: [{ type: 'headgate.io/IPAllocated', status: 'True', reason: 'Allocated', message: ip }],
    isSettled,
  };
  return { kind: 'serve', uid, status };
}
