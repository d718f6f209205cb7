// The API source against a real API server: what comes, in which order, how fast, and with whose rights.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import {
  each,
  Reported,
  serviceJson,
  servicePath,
  sliceJson,
  slicePath,
} from '../support/kube/kube-objects.ts';
import { FaultProxy } from '../support/traffic/fault-proxy.ts';

const test = requires(ava, kubeNeeds());

let kube: Kube;
test.before(async (t) => {
  kube = await startKube(t, { users: { stranger: [] } });
});
test.after.always(() => kube?.stop());

async function proxyOf(): Promise<FaultProxy> {
  return FaultProxy.start({ host: '127.0.0.1', port: Number(new URL(kube.url).port) });
}

// Conformance: before all lists are complete
test.serial('The source reports existing objects as one change, and later events at once', async (t) => {
  await kube.must('POST', servicePath('default'), serviceJson('web'));
  await kube.must('POST', slicePath('default'), sliceJson('web', ['10.1.0.1']));
  await kube.must('POST', '/api/v1/nodes', { metadata: { name: 'node-1' } });
  const reported = await Reported.create(kube);
  t.teardown(() => reported.close());
  t.is(await reported.source.ready, 'api');
  t.is(reported.changes.length, 1);
  t.true(await reported.equals(kube));
  t.true(
    ['Service default/web', 'EndpointSlice default/web-1', 'Node node-1'].every((key) =>
      reported.objects.has(key),
    ),
  );
  await until('connected', () => reported.isConnected);

  await kube.must('PUT', slicePath('default', 'web-1'), sliceJson('web', ['10.1.0.1', '10.1.0.2']));
  await until('the new endpoint', () => reported.changes.length > 1);
  t.deepEqual(
    reported.changes[1]?.upserted.map((object) => object.kind === 'EndpointSlice' && object.endpoints.length),
    [2],
  );
  // A label that the agent does not read is no change.
  await kube.must('PATCH', '/api/v1/nodes/node-1', { metadata: { finalizers: ['example.org/none'] } });
  await kube.must('PATCH', '/api/v1/nodes/node-1', { metadata: { finalizers: [] } });
  await kube.must('DELETE', servicePath('default', 'web'));
  await until('the Service is gone', () => !reported.objects.has('Service default/web'));
  t.deepEqual(reported.changes[2]?.removed, [{ kind: 'Service', key: 'default/web' }]);
  await kube.must('DELETE', slicePath('default', 'web-1'));
  await kube.must('DELETE', '/api/v1/nodes/node-1');
  await until('all is as the API server has it', () => reported.equals(kube));
  t.deepEqual(reported.changes[2]?.problems, []);
});

// Conformance: annotation endpoints.kubernetes.io/last-change-trigger-time
test.serial('Only events since the start have the time when the pods changed', async (t) => {
  const annotated = (addresses: readonly string[], trigger: number) => sliceJson('timed', addresses, trigger);
  await kube.must('POST', slicePath('default'), annotated(['10.1.0.1'], Date.now() + 60_000));
  const begin = Date.now();
  const reported = await Reported.create(kube);
  t.teardown(() => reported.close());
  await until('connected', () => reported.isConnected);
  t.deepEqual(
    reported.changes.map(({ triggerTime }) => triggerTime),
    [undefined],
  );
  const change = async (request: Promise<unknown>): Promise<number | undefined> => {
    const { length } = reported.changes;
    await request;
    await until('the change', () => reported.changes.length > length);
    return reported.changes.at(-1)?.triggerTime;
  };
  const path = slicePath('default', 'timed-1');
  const now = Date.now();
  t.is(await change(kube.must('PUT', path, annotated(['10.1.0.2'], now))), now);
  t.is(await change(kube.must('PUT', path, annotated(['10.1.0.3'], begin - 60_000))), undefined);
  t.is(await change(kube.must('PUT', path, sliceJson('timed', ['10.1.0.4']))), undefined);
  t.is(await change(kube.must('PUT', path, annotated(['10.1.0.5'], now))), now);
  t.is(await change(kube.must('DELETE', path)), undefined);
});

// Conformance: a Service that is deleted and created again
test.serial('A Service that is deleted and created again is removed and added', async (t) => {
  const reported = await Reported.create(kube);
  t.teardown(() => reported.close());
  await kube.must('POST', servicePath('default'), serviceJson('again'));
  await until('it is there', () => reported.objects.has('Service default/again'));
  await until('connected', () => reported.isConnected);
  const { uid: before } = reported.objects.get('Service default/again') ?? {};
  await kube.must('DELETE', servicePath('default', 'again'));
  await kube.must('POST', servicePath('default'), serviceJson('again'));
  await until('another', () => {
    const { uid } = reported.objects.get('Service default/again') ?? {};
    return uid !== undefined && uid !== before;
  });
  t.true(reported.changes.some(({ removed }) => removed.some(({ key }) => key === 'default/again')));
  await kube.must('DELETE', servicePath('default', 'again'));
});

// Conformance: a part of the cluster
test.serial('Settings limit the watches to namespaces and to Services of a selector', async (t) => {
  for (const name of ['blue', 'green']) await kube.must('POST', '/api/v1/namespaces', { metadata: { name } });
  const labelled = { ...serviceJson('seen'), metadata: { name: 'seen', labels: { edge: 'yes' } } };
  for (const space of ['blue', 'green', 'default']) {
    await kube.must('POST', servicePath(space), labelled);
    await kube.must('POST', servicePath(space), serviceJson('unseen'));
  }
  const options = {
    scope: {
      namespaces: ['blue', 'green'],
      serviceSelector: 'edge=yes',
      kinds: ['Service', 'EndpointSlice'],
    },
  };
  const reported = await Reported.create(kube, options as Parameters<typeof Reported.create>[1]);
  t.teardown(() => reported.close());
  await reported.source.synced;
  t.deepEqual([...reported.objects.keys()].sort(), ['Service blue/seen', 'Service green/seen']);
  for (const space of ['blue', 'green', 'default']) {
    for (const name of ['seen', 'unseen']) await kube.must('DELETE', servicePath(space, name));
  }
  await until('they are gone', () => reported.objects.size === 0);
});

test.serial('An account without rights is reported, and works once it has them', async (t) => {
  const reported = await Reported.create(kube, {
    user: { token: 'stranger-token' },
    snapshot: { path: undefined, afterMs: 100 },
  });
  t.teardown(() => reported.close());
  t.is(await reported.source.ready, 'nothing');
  await until('the refusal', () => reported.has('failure Service API_REFUSED'));
  t.true(reported.log.some((line) => /Cannot list services: .* 403 .*forbidden.*"stranger"/.test(line)));
  t.false(reported.log.join('\n').includes('stranger-token'));
  t.is(reported.changes.length, 0);
  await kube.must('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    metadata: { name: 'stranger' },
    subjects: [{ kind: 'User', name: 'stranger', apiGroup: 'rbac.authorization.k8s.io' }],
    roleRef: { kind: 'ClusterRole', name: 'cluster-admin', apiGroup: 'rbac.authorization.k8s.io' },
  });
  await reported.source.synced;
  t.is(reported.changes.length, 1);
  t.true(await reported.equals(kube));
});

// Conformance: connection reset, 5xx, 429, 401, a list that fails
test.serial('A refused token is read again from its file', async (t) => {
  const account = '/api/v1/namespaces/default/serviceaccounts/agent';
  await kube.must('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    metadata: { name: 'agent' },
    subjects: [{ kind: 'ServiceAccount', name: 'agent', namespace: 'default' }],
    roleRef: { kind: 'ClusterRole', name: 'cluster-admin', apiGroup: 'rbac.authorization.k8s.io' },
  });
  const directory = await mkdtemp(join(tmpdir(), 'headgate-token-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const tokenFile = join(directory, 'token');
  await writeFile(tokenFile, `${await kube.serviceAccountToken('default', 'agent')}\n`);
  const reported = await Reported.create(kube, { user: { tokenFile } });
  t.teardown(() => reported.close());
  await reported.source.synced;
  const ask = async () => (await reported.client.request({ method: 'GET', path: '/api/v1/nodes' })).status;
  t.is(await ask(), 200);
  // Its tokens are bound to it: they end with it.
  await kube.must('DELETE', account);
  await until('the old token is refused', async () => (await ask()) === 401);
  await writeFile(tokenFile, `${await kube.serviceAccountToken('default', 'agent')}\n`);
  t.is(await ask(), 200);
});

// Conformance: several API servers
test.serial(
  'The client changes to the next API server if one does not answer, and stays with it',
  async (t) => {
    const [dead, first, second] = [await proxyOf(), await proxyOf(), await proxyOf()];
    t.teardown(() => Promise.all([first.close(), second.close()]));
    await dead.close();
    const servers = [first, second].map(({ port }) => `https://127.0.0.1:${port}`);
    const reported = await Reported.create(kube, { through: dead, servers });
    t.teardown(() => reported.close());
    await until('connected', () => reported.isConnected);
    t.deepEqual([first.connections > 0, second.connections], [true, 0]);
    first.refuse();
    await until('connected to the second', () => second.connections >= 3 && reported.isConnected);
    await kube.must('POST', servicePath('default'), serviceJson('moved'));
    await until('news', () => reported.objects.has('Service default/moved'));
    t.false(reported.has('list Service expired'));
    await kube.must('DELETE', servicePath('default', 'moved'));
  },
);

// Conformance: connection reset, 5xx, 429, 401, a list that fails
// Conformance: churn
test.serial('No update is lost under 200 writes a second while connections are reset', async (t) => {
  t.timeout(120_000);
  const proxy = await proxyOf();
  t.teardown(() => proxy.close());
  const reported = await Reported.create(kube, { through: proxy });
  t.teardown(() => reported.close());
  const [slices, seconds, rate] = [40, 20, 200];
  await each(slices, (index) =>
    kube.must('POST', slicePath('default'), sliceJson(`churn-${index}`, ['10.2.0.1'])),
  );
  await reported.source.synced;
  await until('connected', () => reported.isConnected);
  const begin = performance.now();
  const resets = (async () => {
    for (const at of [3, 7, 11, 15]) {
      await delay(Math.max(0, begin + at * 1000 - performance.now()));
      if (at % 2 === 1) proxy.reset();
      else proxy.cut();
    }
  })();
  const events = reported.changes.length;
  await each(seconds * rate, async (write) => {
    await delay(Math.max(0, begin + (write / rate) * 1000 - performance.now()));
    const name = `churn-${write % slices}`;
    const address = `10.2.${(write >> 8) & 255}.${write & 255}`;
    if (write % 50 === 49) {
      await kube.must('DELETE', slicePath('default', `${name}-1`)).catch(() => undefined);
      await kube.api('POST', slicePath('default'), sliceJson(name, [address]));
    } else await kube.api('PUT', slicePath('default', `${name}-1`), sliceJson(name, [address]));
  });
  await resets;
  await until('all is as the API server has it', () => reported.equals(kube), { seen: () => reported.log });
  t.true(reported.changes.length - events > 1000);
  t.true(reported.has('end EndpointSlice broken'));
  await each(slices, (index) => kube.api('DELETE', slicePath('default', `churn-${index}-1`)));
  await until('they are gone', () => reported.equals(kube));
});

// Conformance: a silent connection
test.serial('A silent connection is closed, and no change is lost', async (t) => {
  const proxy = await proxyOf();
  t.teardown(() => proxy.close());
  const reported = await Reported.create(kube, { through: proxy, times: { silence: 3_000 } });
  t.teardown(() => reported.close());
  await until('connected', () => reported.isConnected);
  proxy.stall();
  await kube.must('POST', servicePath('default'), serviceJson('silent'));
  await until('the silence is noticed', () => reported.has('end Service silence'));
  t.false(reported.objects.has('Service default/silent'));
  proxy.flow({ thaw: false });
  await until('news', () => reported.objects.has('Service default/silent'), { seen: () => reported.log });
  await kube.must('DELETE', servicePath('default', 'silent'));
});

// Conformance: a silent connection
test.serial('Slow bytes cause no failure', async (t) => {
  const proxy = await proxyOf();
  t.teardown(() => proxy.close());
  proxy.delay(150);
  const reported = await Reported.create(kube, { through: proxy });
  t.teardown(() => reported.close());
  await reported.source.synced;
  await kube.must('POST', servicePath('default'), serviceJson('late'));
  await until('news', () => reported.objects.has('Service default/late'));
  await kube.must('DELETE', servicePath('default', 'late'));
  await until('all is as the API server has it', () => reported.equals(kube));
  t.deepEqual(
    reported.log.filter((line) => !line.endsWith('start')),
    [],
  );
});

// Conformance: no API server at the start
test.serial(
  'An agent that starts without an API server serves the snapshot, and then the difference',
  async (t) => {
    const directory = await mkdtemp(join(tmpdir(), 'headgate-snapshot-'));
    t.teardown(() => rm(directory, { recursive: true }));
    const proxy = await proxyOf();
    t.teardown(() => proxy.close());
    const snapshotPath = join(directory, 'api', 'objects');
    const options = { through: proxy, snapshot: { path: snapshotPath, afterMs: 20_000 } };
    for (const name of ['kept', 'changed', 'gone']) {
      await kube.must('POST', servicePath('default'), serviceJson(name));
      await kube.must('POST', slicePath('default'), sliceJson(name, ['10.3.0.1']));
    }
    const first = await Reported.create(kube, options);
    t.is(await first.source.ready, 'api');
    await first.close();

    proxy.refuse();
    const second = await Reported.create(kube, {
      ...options,
      snapshot: { path: snapshotPath, afterMs: 300 },
    });
    t.teardown(() => second.close());
    t.is(await second.source.ready, 'snapshot');
    t.deepEqual(second.objects, first.objects);
    t.true(await second.equals(kube));
    await kube.must('PUT', slicePath('default', 'changed-1'), sliceJson('changed', ['10.3.0.2']));
    await kube.must('DELETE', slicePath('default', 'gone-1'));
    await kube.must('DELETE', servicePath('default', 'gone'));
    proxy.flow();
    await second.source.synced;
    await until('all is as the API server has it', () => second.equals(kube), { seen: () => second.log });
    const differing = second.changes.slice(1).flatMap(({ upserted, removed }) => [...upserted, ...removed]);
    t.deepEqual(differing.map(({ kind, key }) => `${kind} ${key}`).sort(), [
      'EndpointSlice default/changed-1',
      'EndpointSlice default/gone-1',
      'Service default/gone',
    ]);
    for (const name of ['kept', 'changed']) await kube.must('DELETE', servicePath('default', name));
  },
);
