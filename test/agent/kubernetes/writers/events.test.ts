import test from 'ava';
import { EventRecorder, type EventSubject } from '../../../../agent/kubernetes/writers/events.ts';
import {
  type EventText,
  problemEvents,
  writtenEvents,
} from '../../../../agent/kubernetes/writers/service-events.ts';
import type { Problem } from '../../../../agent/model/load-balancer.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';
import { FakeApi, type Json, refusal } from '../../../support/kube/fake-api.ts';
import { silentLog } from '../../../support/values/silent-log.ts';

const WEB: EventSubject = {
  apiVersion: 'v1',
  kind: 'Service',
  namespace: 'shop',
  name: 'web',
  uid: 'uid-web',
};
const WARNING: EventText = {
  type: 'Warning',
  reason: 'AddressInUse',
  action: 'Allocate',
  note: 'It is taken',
};

// Conformance: events.k8s.io/v1 Event
test('EventRecorder sends all fields that events.k8s.io/v1 requires', async (t) => {
  const { api, clock, recorder } = start();
  recorder.record(WEB, WARNING);
  await clock.advance(0);
  const [request, ...more] = api.requests;
  t.deepEqual(more, []);
  t.is(request?.path, '/apis/events.k8s.io/v1/namespaces/shop/events');
  const { metadata, eventTime, ...event } = (request as Json).body;
  t.regex(metadata.name, /^web\.[0-9a-f]{16}$/);
  t.is(metadata.namespace, 'shop');
  t.regex(eventTime, /^2026-11-20T19:00:01\.\d{6}Z$/);
  t.deepEqual(event, {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    reportingController: 'headgate.io/agent',
    reportingInstance: 'lb-1',
    action: 'Allocate',
    reason: 'AddressInUse',
    regarding: { apiVersion: 'v1', kind: 'Service', name: 'web', uid: 'uid-web', namespace: 'shop' },
    note: 'It is taken',
    type: 'Warning',
  });
});

test('EventRecorder names an Event by its content, the same in all versions', async (t) => {
  const { api, clock, recorder } = start();
  recorder.record(WEB, WARNING);
  await clock.advance(0);
  t.is((api.requests[0] as Json).body.metadata.name, 'web.0153bc31dbe1fcf6');
});

// Conformance: events.k8s.io/v1 Event
test('EventRecorder counts repetitions in one Event, at most every 30 s', async (t) => {
  const { api, clock, recorder } = start();
  for (let i = 0; i < 60; i++) {
    recorder.record(WEB, WARNING);
    await clock.advance(1_000);
  }
  await clock.advance(30_000);
  t.is(api.objects.size, 1);
  t.deepEqual(
    api.requests.map(({ method, body }) => [method, (body as Json).series?.count]),
    [
      ['POST', undefined],
      ['PATCH', 30],
      ['PATCH', 60],
    ],
  );
  t.regex((api.requests[1] as Json).body.series.lastObservedTime, /\.\d{6}Z$/);
});

test('EventRecorder creates a new Event after ten minutes without a repetition', async (t) => {
  const { api, clock, recorder } = start();
  recorder.record(WEB, WARNING);
  await clock.advance(11 * 60_000);
  recorder.record(WEB, WARNING);
  await clock.advance(0);
  t.is(api.objects.size, 2);
});

test('EventRecorder creates an Event again that the API server has deleted, with its count', async (t) => {
  const { api, clock, recorder } = start();
  recorder.record(WEB, WARNING);
  await clock.advance(31_000);
  api.objects.clear();
  recorder.record(WEB, WARNING);
  await clock.advance(0);
  t.is([...api.objects.values()][0].series.count, 2);
});

// Conformance: events.k8s.io/v1 Event
test('EventRecorder limits each object to ten Events at once and one per minute', async (t) => {
  const { api, clock, recorder } = start();
  for (let i = 0; i < 100; i++) recorder.record(WEB, { ...WARNING, note: `Number ${i}` });
  recorder.record({ ...WEB, name: 'other', uid: 'uid-other' }, WARNING);
  await clock.advance(10_000);
  t.is(api.requests.length, 11);
  await clock.advance(60_000);
  recorder.record(WEB, { ...WARNING, note: 'A minute later' });
  recorder.record(WEB, { ...WARNING, note: 'And another' });
  await clock.advance(10_000);
  t.is(api.requests.length, 12);
});

test('EventRecorder limits the requests of all objects together', async (t) => {
  const { api, clock, recorder } = start({ rate: 10, burst: 20 });
  for (let i = 0; i < 100; i++) recorder.record({ ...WEB, name: `web-${i}`, uid: `uid-${i}` }, WARNING);
  await clock.advance(0);
  t.is(api.requests.length, 20);
  await clock.advance(2_000);
  t.is(api.requests.length, 40);
});

// Conformance: events.k8s.io/v1 Event
test('EventRecorder drops an Event that fails', async (t) => {
  const results: string[] = [];
  const { api, clock, recorder } = start({ metrics: { eventSent: (result) => results.push(result) } });
  api.fault = () => {
    throw new Error('Cannot reach the API server');
  };
  recorder.record(WEB, WARNING);
  await clock.advance(600_000);
  api.fault = () => refusal(403, 'Forbidden');
  recorder.record(WEB, WARNING);
  await clock.advance(600_000);
  t.is(api.requests.length, 2);
  t.deepEqual(results, ['dropped', 'dropped']);
});

test('EventRecorder keeps room for other namespaces', async (t) => {
  const { api, clock, recorder } = start({ rate: 10, burst: 1 });
  for (let i = 0; i < 3_000; i++) recorder.record({ ...WEB, uid: `uid-${i}`, name: `web-${i}` }, WARNING);
  recorder.record({ ...WEB, namespace: 'other' }, WARNING);
  t.is(recorder.waiting, 502);
  await clock.advance(60_000);
  t.true(api.requests.some(({ path }) => path.includes('/namespaces/other/')));
});

test('EventRecorder drops Events beyond a thousand that wait', async (t) => {
  const results: string[] = [];
  const { clock, recorder } = start({
    rate: 1,
    burst: 1,
    metrics: { eventSent: (one) => results.push(one) },
  });
  for (let i = 0; i < 3_000; i++)
    recorder.record({ ...WEB, namespace: `shop-${i % 10}`, uid: `uid-${i}` }, WARNING);
  await clock.advance(0);
  t.true(results.filter((one) => one === 'dropped').length >= 1_990);
});

test('EventRecorder sends nothing while the agent does not lead', async (t) => {
  const { api, clock, recorder } = start({ isLeader: () => false });
  recorder.record(WEB, WARNING);
  await clock.advance(60_000);
  t.deepEqual(api.requests, []);
});

test('EventRecorder cuts a note between two characters, to 1,024 bytes', async (t) => {
  const { api, clock, recorder } = start();
  for (const note of ['ä'.repeat(2_000), `x${'ä'.repeat(2_000)}`, '😀'.repeat(600)])
    recorder.record(WEB, { ...WARNING, note });
  await clock.advance(0);
  t.is(api.requests.length, 3);
  for (const { body } of api.requests) {
    const { note } = body as Json;
    t.true(Buffer.byteLength(note) <= 1024 && Buffer.byteLength(note) > 1015);
    t.regex(note, /^x?(ä+|(😀)+)…$/u);
  }
});

test('EventRecorder puts Events of cluster-wide objects into the namespace default', async (t) => {
  const { api, clock, recorder } = start();
  const pool = {
    apiVersion: 'headgate.io/v1alpha1',
    kind: 'AddressPool',
    namespace: '',
    name: 'a.b',
    uid: 'u',
  };
  recorder.record(pool, WARNING);
  await clock.advance(0);
  t.is(api.requests[0]?.path, '/apis/events.k8s.io/v1/namespaces/default/events');
  t.false('namespace' in (api.requests[0] as Json).body.regarding);
});

test('writtenEvents() gives Events for changes only, so that a restart repeats none', (t) => {
  const none = { conditions: [] };
  const pending = conditions(
    ['headgate.io/IPAllocated', 'True', '192.0.2.10'],
    ['headgate.io/Programmed', 'False'],
  );
  const served = conditions(
    ['headgate.io/IPAllocated', 'True', '192.0.2.10'],
    ['headgate.io/Programmed', 'True'],
  );
  const moved = conditions(
    ['headgate.io/IPAllocated', 'True', '192.0.2.11'],
    ['headgate.io/Programmed', 'True'],
  );
  const reasons = (before: typeof none, after: typeof none) =>
    writtenEvents(before, after).map(({ reason }) => reason);
  t.deepEqual(reasons(none, pending), ['Allocated']);
  t.deepEqual(reasons(pending, served), ['Programmed']);
  t.deepEqual(reasons(served, served), []);
  t.deepEqual(reasons(served, moved), ['Allocated']);
  t.deepEqual(reasons(served, none), ['Released']);
  const doubtful = conditions(
    [
      'headgate.io/IPAllocated',
      'True',
      '192.0.2.10; It keeps 192.0.2.10, although it belongs to no pool any more',
    ],
    ['headgate.io/Programmed', 'True'],
  );
  t.deepEqual(reasons(served, doubtful), []);
  t.is(writtenEvents(none, doubtful)[0]?.note, 'The Service has the addresses 192.0.2.10');
});

test('writtenEvents() warns when a served Service loses its last ready member, and reports when it has one again', (t) => {
  const [programmed, empty] = ['Programmed', 'NoMembers'].map((reason) => ({
    conditions: [
      {
        type: 'headgate.io/Programmed',
        status: 'True' as const,
        reason,
        message: `message of ${reason}`,
      },
    ],
  })) as unknown as [WrittenConditions, WrittenConditions];
  const warning = { type: 'Warning', reason: 'NoMembers', action: 'Program', note: 'message of NoMembers' };
  t.deepEqual(writtenEvents(programmed, empty), [warning]);
  t.is(writtenEvents(empty, programmed)[0]?.note, 'All ports of the Service have a ready member');
  t.deepEqual(writtenEvents(empty, empty), []);
  // A new one without pods.
  t.deepEqual(
    writtenEvents({ conditions: [] }, empty).map(({ reason }) => reason),
    ['Programmed'],
  );
});

test('problemEvents() gives a warning for each new problem', (t) => {
  const problem = (message: string): Problem => ({
    object: 'Service shop/web',
    reason: 'InvalidAnnotation',
    message,
  });
  t.deepEqual(problemEvents([problem('old')], [problem('old'), problem('new')]), [
    { type: 'Warning', reason: 'InvalidAnnotation', action: 'Translate', note: 'new' },
  ]);
  t.deepEqual(problemEvents([problem('old')], []), []);
});

function start(more: Partial<ConstructorParameters<typeof EventRecorder>[0]> = {}) {
  const [api, clock] = [new FakeApi(), new FakeClock()];
  const recorder = new EventRecorder({
    api,
    clock,
    log: silentLog(),
    instance: 'lb-1',
    isLeader: () => true,
    ...more,
  });
  return { api, clock, recorder };
}

type WrittenConditions = Parameters<typeof writtenEvents>[0];

function conditions(...list: readonly (readonly [string, string, string?])[]): Json {
  return { conditions: list.map(([type, status, message = '']) => ({ type, status, message })) };
}
