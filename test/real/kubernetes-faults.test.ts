// The API source and what becomes of API servers: restarts, lost history, lost data, lists that lack most of it.

import ava from 'ava';
import type { ApiRequest } from '../../agent/kubernetes/api/kubernetes-api.ts';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import {
  each,
  Reported,
  seeing,
  serviceJson,
  servicePath,
  sliceJson,
  slicePath,
} from '../support/kube/kube-objects.ts';
import { FaultProxy } from '../support/traffic/fault-proxy.ts';

const test = requires(ava, kubeNeeds());

let kube: Kube;
let proxy: FaultProxy;
test.before(async (t) => {
  kube = await startKube(t);
});
test.beforeEach(async () => {
  proxy = await FaultProxy.start({ host: '127.0.0.1', port: Number(new URL(kube.url).port) });
});
test.afterEach.always(() => proxy?.close());
test.after.always(() => kube?.stop());

/** Cuts the agent off, forgets the past, and lets it in again after `meanwhile`. */
async function expire(meanwhile: () => Promise<unknown>): Promise<void> {
  proxy.refuse();
  await meanwhile();
  await kube.compact();
  await kube.restartApiServer();
  proxy.flow();
}

// Conformance: connection reset, 5xx, 429, 401, a list that fails
test.serial('A restart of the API server removes no object and loses no change', async (t) => {
  t.timeout(60_000);
  await kube.must('POST', servicePath('default'), serviceJson('before'));
  const reported = await Reported.create(kube, { through: proxy });
  t.teardown(() => reported.close());
  await until('connected', () => reported.isConnected);
  const changes = reported.changes.length;
  await kube.killApiServer();
  await until('the end is noticed', () => !reported.isConnected);
  t.true(reported.source.isSynced);
  await kube.startApiServer();
  await kube.must('POST', servicePath('default'), serviceJson('after'));
  await until('news', () => reported.objects.has('Service default/after'), { seen: () => reported.log });
  t.true(await reported.equals(kube));
  t.deepEqual(
    reported.changes.slice(changes).flatMap(({ removed }) => removed),
    [],
  );
});

// Conformance: 410 Gone, as an event or as a status
test.serial('After compacted events the reflector lists all pages and reports the difference', async (t) => {
  t.timeout(90_000);
  const count = 620;
  await kube.must('POST', '/api/v1/namespaces', { metadata: { name: 'many' } });
  await each(count, (index) => kube.must('POST', slicePath('many'), sliceJson(`s${index}`, ['10.4.0.1'])));
  const pages: ApiRequest[] = [];
  const reported = await Reported.create(kube, {
    through: proxy,
    wrap: (client) => seeing(client, async (request) => void pages.push(request)),
  });
  t.teardown(() => reported.close());
  await until('connected', () => reported.isConnected);
  const changes = reported.changes.length;
  await expire(async () => {
    await kube.must('PUT', slicePath('many', 's7-1'), sliceJson('s7', ['10.4.0.7']));
    await kube.must('DELETE', slicePath('many', 's8-1'));
    await kube.must('DELETE', slicePath('many', 's9-1'));
    await kube.must('POST', slicePath('many'), sliceJson('s9', ['10.4.0.1']));
    await each(100, (index) =>
      kube.must('PATCH', slicePath('many', `s${index + 100}-1`), { metadata: { labels: { a: 'b' } } }),
    );
  });
  await until('the lists', () => reported.has('list EndpointSlice expired'), { seen: () => reported.log });
  await until('all is as the API server has it', () => reported.equals(kube), { seen: () => reported.log });
  const differing = reported.changes.slice(changes);
  const slicesOf = (list: readonly { kind: string; key: string }[]) =>
    list.flatMap(({ kind, key }) => (kind === 'EndpointSlice' ? [key] : [])).sort();
  t.deepEqual(slicesOf(differing.flatMap(({ removed }) => removed)), ['many/s8-1', 'many/s9-1']);
  t.deepEqual(slicesOf(differing.flatMap(({ upserted }) => upserted)), ['many/s7-1', 'many/s9-1']);
  t.true(pages.some(({ query }) => query?.continue !== undefined && query.limit === '500'));
});

// Conformance: pages of a list
test.serial('The reflector begins a list again if its next page has expired', async (t) => {
  t.timeout(90_000);
  let isFirst = true;
  const lists: (ApiRequest['query'] | undefined)[] = [];
  const reported = await Reported.create(kube, {
    through: proxy,
    scope: { kinds: ['EndpointSlice'] },
    wrap: (client) =>
      seeing(client, async ({ query }) => {
        if (query?.watch === undefined && query?.limit !== '1') lists.push(query);
        if (query?.continue === undefined || !isFirst) return;
        isFirst = false;
        await kube.must('PUT', slicePath('many', 's1-1'), sliceJson('s1', ['10.4.0.99']));
        await kube.compact();
        await kube.restartApiServer();
      }),
  });
  t.teardown(() => reported.close());
  await until('connected', () => reported.isConnected);
  await expire(() => kube.must('PUT', slicePath('many', 's0-1'), sliceJson('s0', ['10.4.0.98'])));
  await until('the list', () => reported.has('list EndpointSlice expired'), {
    seen: () => [JSON.stringify(lists), ...reported.log],
  });
  const slice = reported.objects.get('EndpointSlice many/s1-1');
  t.is(slice?.kind === 'EndpointSlice' && slice.endpoints[0]?.address, '10.4.0.99');
  t.deepEqual(lists.at(-1), {});
  await kube.must('DELETE', slicePath('many'));
  await until('they are gone', () => ![...reported.objects.keys()].some((key) => key.includes('many/')));
});

// Conformance: a list without most of the known objects
test.serial('The loss of most Services counts only when a second list confirms it', async (t) => {
  t.timeout(90_000);
  for (let index = 0; index < 10; index++)
    await kube.must('POST', servicePath('default'), serviceJson(`mass-${index}`));
  const reported = await Reported.create(kube, { through: proxy, times: { confirm: 4_000 } });
  t.teardown(() => reported.close());
  await until('connected', () => reported.isConnected);
  const count = () => [...reported.objects.keys()].filter((key) => key.includes('/mass-')).length;
  t.is(count(), 10);
  await expire(async () => {
    for (let index = 0; index < 8; index++)
      await kube.must('DELETE', servicePath('default', `mass-${index}`));
  });
  await until('doubt', () => reported.has('doubt Service'), { seen: () => reported.log });
  const doubted = performance.now();
  t.is(count(), 10);
  // What happens meanwhile is not held up: neither additions nor removals that a watch reports.
  await until('connected', () => reported.isConnected);
  await kube.must('POST', servicePath('default'), serviceJson('fresh'));
  await kube.must('DELETE', servicePath('default', 'mass-9'));
  await until('the event', () => reported.objects.has('Service default/fresh') && count() < 10);
  t.is(count(), 9);
  await until('the second list', () => count() === 1, { seen: () => reported.log });
  t.true(performance.now() - doubted >= 3_500);
  t.true(reported.has('list Service confirm'));
  t.true(await reported.equals(kube));
});

test.serial('Objects that come back before the second list stay', async (t) => {
  t.timeout(90_000);
  for (let index = 0; index < 6; index++)
    await kube.must('POST', servicePath('default'), serviceJson(`back-${index}`));
  const reported = await Reported.create(kube, { through: proxy, times: { confirm: 2_000 } });
  t.teardown(() => reported.close());
  await until('connected', () => reported.isConnected);
  const changes = reported.changes.length;
  await expire(async () => {
    const { items } = await kube.must('GET', servicePath('default'));
    for (const { metadata } of items) await kube.must('DELETE', servicePath('default', metadata.name));
  });
  await until('doubt', () => reported.has('doubt Service'), { seen: () => reported.log });
  for (let index = 0; index < 6; index++)
    await kube.must('POST', servicePath('default'), serviceJson(`back-${index}`));
  await until('the second list', () => reported.has('list Service confirm'), { seen: () => reported.log });
  await until('all is as the API server has it', () => reported.equals(kube), { seen: () => reported.log });
  const gone = reported.changes.slice(changes).flatMap(({ removed, upserted }) => {
    const kept = new Set(upserted.map(({ key }) => key));
    return removed.filter(({ key }) => key.includes('/back-') && !kept.has(key));
  });
  t.deepEqual(gone, []);
});

// Conformance: a list without most of the known objects
test.serial(
  'The reflector finds an API server that has lost its store, and takes later objects as new ones',
  async (t) => {
    t.timeout(90_000);
    for (let index = 0; index < 6; index++)
      await kube.must('POST', servicePath('default'), serviceJson(`lost-${index}`));
    const reported = await Reported.create(kube, { through: proxy, times: { confirm: 1_000 } });
    t.teardown(() => reported.close());
    await until('connected', () => reported.isConnected);
    const uid = () => reported.objects.get('Service default/lost-0')?.uid;
    const before = uid();
    const changes = reported.changes.length;
    proxy.refuse();
    await kube.restartWithEmptyEtcd();
    await kube.must('POST', servicePath('default'), serviceJson('lost-0'));
    proxy.flow();
    await until('doubt', () => reported.has('doubt Service'), { seen: () => reported.log });
    t.true(reported.objects.has('Service default/lost-5'));
    await until('the one that is back', () => uid() !== before, { seen: () => reported.log });
    await until('all is as the API server has it', () => reported.equals(kube), { seen: () => reported.log });
    t.true(reported.has('list Service backwards'));
    t.true(
      reported.changes
        .slice(changes)
        .some(({ removed }) => removed.some(({ key }) => key === 'default/lost-5')),
    );
    await kube.must('POST', servicePath('default'), serviceJson('new'));
    await until('news', () => reported.objects.has('Service default/new'));
  },
);
