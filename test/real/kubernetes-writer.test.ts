// What the agent writes, on a real API server and with the rights that deploy/ gives it.

import { setTimeout as delay } from 'node:timers/promises';
import ava from 'ava';
import { systemClock } from '../../agent/base/clock.ts';
import type { ApiClient } from '../../agent/kubernetes/api/client.ts';
import { type CurrentService, readCurrentService } from '../../agent/kubernetes/current-service.ts';
import { parseObject } from '../../agent/kubernetes/parse-object.ts';
import { EventRecorder } from '../../agent/kubernetes/writers/events.ts';
import { Lease } from '../../agent/kubernetes/writers/lease.ts';
import { writtenEvents } from '../../agent/kubernetes/writers/service-events.ts';
import { type DesiredService, FINALIZER } from '../../agent/kubernetes/writers/service-patch.ts';
import { desiredStatus, type StatusFacts } from '../../agent/kubernetes/writers/service-status.ts';
import { StatusWriter, type StatusWriterOptions } from '../../agent/kubernetes/writers/status-writer.ts';
import type { Protocol } from '../../agent/model/load-balancer.ts';
import { Deadline } from '../support/basics/deadline.ts';
import { requires } from '../support/basics/requirements.ts';
import { agentClient, deploy, NAMESPACE } from '../support/kube/deploy.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { silentLog } from '../support/values/silent-log.ts';
import { loadBalancerOf, translated } from '../support/values/translated.ts';

const test = requires(ava, kubeNeeds());

const SERVICES = '/api/v1/namespaces/default/services';
const allServed: StatusFacts = { serves: () => true, problems: [] };
/** On a host that cannot forward UDP. */
const tcpServed: StatusFacts = {
  serves: (name) => name.includes(':tcp:'),
  problems: [
    {
      object: 'Service default/dns',
      reason: 'ProtocolNotServed',
      message: 'Cannot serve UDP port 53: the program nft is missing',
      port: { protocol: 'UDP', port: 53 },
    },
  ],
};

let kube: Kube;
let api: ApiClient;
/** UID → the Service as the API server gave it back. */
const created = new Map<string, unknown>();

test.before(async (t) => {
  kube = await startKube(t);
  await deploy(kube);
  api = await agentClient(kube);
});

test.after.always(async () => {
  api?.close();
  await kube?.stop();
});

// Conformance: status.loadBalancer.ingress[].ipMode
test.serial('The API server accepts a status with ports, errors and conditions', async (t) => {
  const service = await create('dns', {
    ports: [
      ['TCP', 53],
      ['UDP', 53],
    ],
    loadBalancerIP: '192.0.2.10',
  });
  const writer = writes();
  writer.set('default/dns', serve(service, tcpServed));
  const written = await until(
    'the status is there',
    () => read('dns'),
    ({ ingress }) => ingress.length > 0,
  );
  t.deepEqual(written.ingress, [
    {
      ip: '192.0.2.10',
      ipMode: 'Proxy',
      ports: [
        { port: 53, protocol: 'TCP' },
        { port: 53, protocol: 'UDP', error: 'headgate.io/ProtocolNotServed' },
      ],
    },
  ]);
  t.deepEqual(
    written.conditions.map(({ type, status, reason }) => `${type} ${status} ${reason}`),
    [
      'headgate.io/IPAllocated True Allocated',
      'headgate.io/Programmed False ProtocolNotServed',
      'LoadBalancerPortsError True LoadBalancerMixedProtocolNotSupported',
    ],
  );
  t.deepEqual(written.finalizers, [FINALIZER]);
  await writer.close();
});

// Conformance: status.loadBalancer.ingress[].ipMode
test.serial("The API server accepts ipMode VIP for an address that keeps the client's", async (t) => {
  const annotations = { 'headgate.io/source-address': 'client' };
  const service = await create('kept', {
    ports: [['UDP', 53]],
    loadBalancerIP: '192.0.2.53',
    annotations,
  });
  const writer = writes();
  writer.set('default/kept', serve(service, allServed));
  const { ingress } = await until(
    'the status is there',
    () => read('kept'),
    (written) => written.ingress.length > 0,
  );
  t.deepEqual(ingress, [{ ip: '192.0.2.53', ipMode: 'VIP', ports: [{ port: 53, protocol: 'UDP' }] }]);
  await writer.close();
});

// Conformance: finalizer service.kubernetes.io/load-balancer-cleanup
test.serial('Kubernetes 1.34 takes the finalizer and the status in one patch of the status', async (t) => {
  const old = await startKube(t, { emulatedVersion: '1.34' });
  t.teardown(() => old.stop());
  const spec = { type: 'LoadBalancer', ports: [{ port: 80 }] };
  const { metadata } = await old.must('POST', SERVICES, { metadata: { name: 'old' }, spec });
  const { uid, resourceVersion } = metadata;
  const patch = {
    metadata: { uid, resourceVersion, finalizers: [FINALIZER] },
    status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } },
  };
  await old.must('PATCH', `${SERVICES}/old/status`, patch, 'application/merge-patch+json');
  const service = readCurrentService(await old.must('GET', `${SERVICES}/old`));
  t.deepEqual([service?.finalizers, service?.ingress[0]?.ip], [[FINALIZER], '192.0.2.1']);
});

test.serial('An agent that takes over does not write an unchanged status again', async (t) => {
  const service = await create('again', { loadBalancerIP: '192.0.2.11' });
  const first = writes();
  first.set('default/again', serve(service, allServed));
  const before = await until(
    'the status is there',
    () => read('again'),
    ({ ingress }) => ingress.length > 0,
  );
  await first.close();
  const results: string[] = [];
  const second = writes({ metrics: { statusWritten: (result) => results.push(result) } });
  second.set('default/again', serve(service, allServed));
  await until(
    'it has looked',
    async () => second.waiting,
    (waiting) => waiting === 0,
  );
  await second.close();
  t.deepEqual(results, []);
  t.is((await read('again')).resourceVersion, before.resourceVersion);
});

// Conformance: status.conditions
test.serial('Two writers of one Service both keep their part', async (t) => {
  const service = await create('shared', { loadBalancerIP: '192.0.2.12' });
  const writer = writes({ currentService: () => service });
  const theirs = { type: 'example.org/Probed', status: 'True', reason: 'Any', message: '' };
  const lastTransitionTime = '2026-11-20T19:00:00Z';
  await kube.must('PATCH', `${SERVICES}/shared/status`, {
    status: { conditions: [{ ...theirs, lastTransitionTime }] },
  });
  writer.set('default/shared', serve(service, allServed));
  const written = await until(
    'ours is there',
    () => read('shared'),
    ({ ingress }) => ingress.length > 0,
  );
  t.deepEqual(
    written.conditions.map(({ type }) => type),
    ['example.org/Probed', 'headgate.io/IPAllocated', 'headgate.io/Programmed'],
  );
  await writer.close();
});

// Conformance: finalizer service.kubernetes.io/load-balancer-cleanup
test.serial(
  'requestFinalizer() adds the finalizer first; a deletion then waits for the teardown only',
  async (t) => {
    const service = await create('doomed', { loadBalancerIP: '192.0.2.13' });
    const writer = writes();
    t.true(await writer.requestFinalizer('default/doomed', service.uid));
    t.deepEqual((await read('doomed')).finalizers, [FINALIZER]);
    writer.set('default/doomed', serve(service, allServed));
    await until(
      'it is served',
      () => read('doomed'),
      ({ ingress }) => ingress.length > 0,
    );
    const { spec } = await kube.must('GET', `${SERVICES}/doomed`);
    await kube.must('DELETE', `${SERVICES}/doomed`);
    t.true((await read('doomed')).isDeleting);
    writer.set('default/doomed', serve(service, allServed));
    writer.set('default/doomed', { kind: 'release', uid: service.uid, isTornDown: false });
    t.true((await read('doomed')).isDeleting);
    writer.set('default/doomed', { kind: 'release', uid: service.uid, isTornDown: true });
    await until(
      'it is gone',
      () => kube.api('GET', `${SERVICES}/doomed`),
      ({ status }) => status === 404,
    );
    const heir = { ports: [{ port: 80 }], clusterIP: spec.clusterIP };
    // The API server gives the address back a moment after the Service is gone.
    await until(
      'the cluster IP is free again',
      () => kube.api('POST', SERVICES, { metadata: { name: 'heir' }, spec: heir }),
      ({ status }) => status === 201,
    );
    await writer.close();
  },
);

// Conformance: spec.type
test.serial('A Service that becomes another type loses address, conditions and finalizer', async (t) => {
  const service = await create('turned', { loadBalancerIP: '192.0.2.14' });
  await kube.must('PATCH', `${SERVICES}/turned`, { metadata: { finalizers: ['example.org/keep'] } });
  const writer = writes();
  writer.set('default/turned', serve(service, allServed));
  await until(
    'it is served',
    () => read('turned'),
    ({ ingress }) => ingress.length > 0,
  );
  await kube.must('PATCH', `${SERVICES}/turned`, { spec: { type: 'ClusterIP' } });
  writer.set('default/turned', { kind: 'release', uid: service.uid, isTornDown: true });
  const after = await until(
    'it is let go',
    () => read('turned'),
    ({ conditions }) => conditions.length === 0,
  );
  t.deepEqual(after.finalizers, ['example.org/keep']);
  t.deepEqual(after.ingress, []);
  await writer.close();
});

// Conformance: finalizer service.kubernetes.io/load-balancer-cleanup
test.serial('A Service is released without a confirmed teardown after the limit', async (t) => {
  const service = await create('stuck', { loadBalancerIP: '192.0.2.15' });
  const writer = writes({ teardownLimitMs: 300 });
  t.true(await writer.requestFinalizer('default/stuck', service.uid));
  await kube.must('DELETE', `${SERVICES}/stuck`);
  writer.set('default/stuck', { kind: 'release', uid: service.uid, isTornDown: false });
  await until(
    'it is gone',
    () => kube.api('GET', `${SERVICES}/stuck`),
    ({ status }) => status === 404,
  );
  t.pass();
  await writer.close();
});

// Conformance: a Service that is deleted and created again
test.serial("A Service that was created again is not written with its predecessor's status", async (t) => {
  const old = await create('reborn', { loadBalancerIP: '192.0.2.16' });
  await kube.must('DELETE', `${SERVICES}/reborn`);
  const reborn = await create('reborn', { loadBalancerIP: '192.0.2.17' });
  const writer = writes({ currentService: () => old });
  writer.set('default/reborn', serve(old, allServed));
  await until(
    'it has looked',
    async () => writer.waiting,
    (waiting) => waiting === 0,
  );
  t.is((await read('reborn')).resourceVersion, reborn.resourceVersion);
  await writer.close();
});

// Conformance: events.k8s.io/v1 Event
test.serial('Events are in both versions of their API, with counted repetitions', async (t) => {
  const service = await create('talked-about', {});
  const recorder = new EventRecorder({
    api,
    // Twenty times as fast: a repetition is sent after 1.5 s, and a series ends after 30 s, which no slow machine reaches.
    clock: {
      ...systemClock,
      monotonic: () => systemClock.monotonic() * 20,
      after: (milliseconds, call) => systemClock.after(milliseconds / 20, call),
    },
    log: silentLog(),
    instance: 'lb-1',
    isLeader: () => true,
  });
  const subject = {
    apiVersion: 'v1',
    kind: 'Service',
    namespace: 'default',
    name: service.name,
    uid: service.uid,
  };
  const note = `Cannot have "192.0.2.99": ${'no pool holds it '.repeat(100)}`;
  const text = { type: 'Warning', reason: 'AddressNotInPool', action: 'Allocate', note } as const;
  recorder.record(subject, text);
  const selector = `fieldSelector=involvedObject.uid%3D${service.uid}`;
  const events = () => kube.must('GET', `/api/v1/namespaces/default/events?${selector}`);
  await until('it is there', events, ({ items }) => items.length === 1);
  recorder.record(subject, text);
  recorder.record(subject, text);
  const { items } = await until('it is counted', events, (list) => list.items[0]?.series?.count === 3);
  t.is(items.length, 1);
  const [event] = items;
  t.is(event.reason, 'AddressNotInPool');
  t.is(event.reportingComponent, 'headgate.io/agent');
  t.is(Buffer.byteLength(event.message), 1024);
  await recorder.close();
});

test.serial('A written status causes its Events once', async (t) => {
  const service = await create('announced', { loadBalancerIP: '192.0.2.18' });
  const reasons: string[] = [];
  const onWritten = (before: CurrentService, after: CurrentService) =>
    reasons.push(...writtenEvents(before, after).map(({ reason }) => reason));
  const writer = writes({ onWritten });
  writer.set('default/announced', serve(service, allServed));
  await until(
    'it is told',
    async () => reasons.length,
    (count) => count > 0,
  );
  t.deepEqual(reasons, ['Allocated', 'Programmed']);
  await writer.close();
});

// Conformance: coordination.k8s.io/v1 Lease
test.serial('One of two agents leads; the other one takes over at once when it closes', async (t) => {
  const a = elects('a');
  await until('a leads', async () => a.isLeader, Boolean);
  const b = elects('b');
  await until(
    'b knows',
    async () => b.holder,
    (holder) => holder === 'a',
  );
  t.false(b.isLeader);
  await a.close();
  await until('b leads', async () => b.isLeader, Boolean);
  const lease = await kube.must(
    'GET',
    `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases/headgate`,
  );
  t.is(lease.spec.holderIdentity, 'b');
  t.regex(lease.spec.renewTime, /\.\d{6}Z$/);
  t.is(lease.spec.leaseTransitions, 1);
  await b.close();
});

// Conformance: coordination.k8s.io/v1 Lease
test.serial('The API server refuses a Lease time without six digits', async (t) => {
  const spec = { holderIdentity: 'x', renewTime: new Date().toISOString() };
  const leases = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`;
  const { status } = await kube.api('POST', leases, { metadata: { name: 'three-digits' }, spec });
  t.is(status, 400);
});

test.serial('A frozen API server ends the lead in time, and the same agent leads afterwards', async (t) => {
  const told: boolean[] = [];
  const lease = elects('c', (isLeader) => told.push(isLeader));
  await until('it leads', async () => lease.isLeader, Boolean);
  kube.freezeApiServer();
  await until(
    'it leads no longer',
    async () => lease.isLeader,
    (isLeader) => !isLeader,
  );
  kube.thawApiServer();
  await until('it leads again', async () => lease.isLeader, Boolean);
  t.deepEqual(told, [true, false, true]);
  await lease.close();
});

test.serial('A status is written when the API server is back', async (t) => {
  const service = await create('patient', { loadBalancerIP: '192.0.2.19' });
  await kube.killApiServer();
  const writer = writes();
  writer.set('default/patient', serve(service, allServed));
  await until(
    'it has tried',
    async () => writer.fault,
    (fault) => fault !== '',
  );
  await kube.startApiServer();
  await until(
    'the status is there',
    () => read('patient'),
    ({ ingress }) => ingress.length > 0,
  );
  // It is there before the answer has come.
  await until(
    'no fault is left',
    async () => writer.fault,
    (fault) => fault === '',
  );
  t.pass();
  await writer.close();
});

function writes(more: Partial<StatusWriterOptions> = {}): StatusWriter {
  const writer = new StatusWriter({
    api,
    clock: systemClock,
    log: silentLog(),
    isLeader: () => true,
    currentService: () => undefined,
    ...more,
  });
  writer.lead(true);
  return writer;
}

function elects(identity: string, onLeader = (_: boolean) => {}): Lease {
  const lease = new Lease({
    api,
    clock: systemClock,
    log: silentLog(),
    namespace: NAMESPACE,
    name: 'headgate',
    identity,
    times: { durationMs: 3_000, renewDeadlineMs: 2_000, retryMs: 300 },
    onLeader,
  });
  lease.start();
  return lease;
}

interface Asked {
  readonly ports?: readonly (readonly [Protocol, number])[];
  readonly loadBalancerIP?: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

async function create(
  name: string,
  { ports = [['TCP', 80]], loadBalancerIP, annotations = {} }: Asked,
): Promise<CurrentService> {
  const body = await kube.must('POST', SERVICES, {
    metadata: { name, annotations },
    spec: {
      type: 'LoadBalancer',
      ports: ports.map(([protocol, port]) => ({ name: `${protocol.toLowerCase()}-${port}`, protocol, port })),
      loadBalancerIP,
    },
  });
  const service = existing(body);
  created.set(service.uid, body);
  return service;
}

/** What the agent would make of it. */
function serve({ namespace, name, uid }: CurrentService, facts: StatusFacts): DesiredService {
  const { objects } = parseObject(created.get(uid), '');
  const model = translated(objects, { handleUnclassed: true });
  return { kind: 'serve', uid, status: desiredStatus(loadBalancerOf(model, `${namespace}/${name}`), facts) };
}

async function read(name: string): Promise<CurrentService> {
  return existing(await kube.must('GET', `${SERVICES}/${name}`));
}

function existing(json: unknown): CurrentService {
  const service = readCurrentService(json);
  if (service === undefined) throw new Error('This is no Service');
  return service;
}

async function until<T>(what: string, ask: () => Promise<T>, isSo: (answer: T) => unknown): Promise<T> {
  for (const deadline = new Deadline(30_000, 40); ; await delay(20)) {
    const answer = await ask();
    if (isSo(answer)) return answer;
    if (deadline.isOver) throw new Error(`Waited in vain until ${what}: ${JSON.stringify(answer)}`);
  }
}
