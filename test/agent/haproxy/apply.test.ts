import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import ava, { type ExecutionContext } from 'ava';
import { applyPlans } from '../../../agent/haproxy/apply.ts';
import { planLoadBalancer } from '../../../agent/haproxy/plan.ts';
import { readRunning } from '../../../agent/haproxy/readback.ts';
import { Running } from '../../../agent/haproxy/running.ts';
import type { Command } from '../../../agent/haproxy/socket/commands.ts';
import type { LoadBalancer } from '../../../agent/model/load-balancer.ts';
import { requires } from '../../support/basics/requirements.ts';
import { effectOf } from '../../support/haproxy/effect.ts';
import { Loopback, startRendered } from '../../support/haproxy/rendered-haproxy.ts';
import { service, slice } from '../../support/values/build.ts';
import { API, type PemPair, secret, WEB } from '../../support/values/certificates.ts';
import { loadBalancerOf, translated } from '../../support/values/translated.ts';

const test = requires(ava, { haproxy: true });

const NAME = 'default:web:tcp:80:v4';

/** A real HAProxy with two load balancers; the tests change the second. */
async function started(t: ExecutionContext, annotations: Readonly<Record<string, string>> = {}) {
  const loopback = new Loopback();
  const web = (...endpoints: string[]) =>
    loopback.bindable(loadBalancerOf(translated([service({ annotations }), slice({ endpoints })])));
  const api = await loopback.bindable(
    loadBalancerOf(translated([service({ name: 'api', ports: [81] })]), 'default/api'),
  );
  const before = await web('10.0.0.1', '10.0.0.2');
  const { worker, context } = await startRendered(t, [api, before]);
  return {
    web,
    before,
    worker,
    /** Sends commands as another process does, so that the agent's record misses them. */
    sendElsewhere: (...commands: readonly Command[]) => worker.runtime.send(commands),
    apply(desired: LoadBalancer) {
      const plan = (key: string) =>
        planLoadBalancer({ key, running: worker.running, before, after: desired });
      return applyPlans(worker, [plan(desired.key)], (keys) => keys.map(plan));
    },
    /** HAProxy runs the desired state, and the record shows it. */
    async runs(desired: LoadBalancer): Promise<void> {
      const observed = await readRunning(worker.runtime, [desired], true, context.aclId);
      const booted = Running.booted([desired], context.aclId);
      t.deepEqual(effectOf(observed, [NAME]), effectOf(booted, [NAME]));
      t.deepEqual(effectOf(worker.running, [NAME]), effectOf(booted, [NAME]));
    },
  };
}

test('A plan without commands sends nothing', async (t) => {
  const { worker, apply, before } = await started(t);
  worker.runtime.close();
  t.deepEqual(await apply(before), {
    acknowledged: [],
    refused: [],
    repaired: [],
    refusedCertificates: [],
    refusedRows: [],
    beyondRepair: [],
    lost: undefined,
  });
});

test('A replaced worker gets no further command after its refusal', async (t) => {
  const { worker, web, apply } = await started(t);
  const { pid } = worker.runtime.worker;
  process.kill(pid, 'SIGUSR1');
  // It continues for a moment beside its replacement.
  while (!(await worker.runtime.ask('show stat -1 1 -1')).includes(',STOP,')) await delay(5);
  let reads = 0;
  const { ask } = worker.runtime;
  worker.runtime.ask = (...args) => {
    reads++;
    return ask.apply(worker.runtime, args);
  };
  const { beyondRepair, refused, lost } = await apply(await web('10.0.0.1', '10.0.0.3'));
  t.deepEqual(beyondRepair, [NAME]);
  t.true(refused.some(({ reply }) => reply === 'Proxy is disabled.'));
  t.is(lost, undefined);
  t.is(reads, 0);
});

test('After a refused command the listener is read back, planned again and repaired', async (t) => {
  const { sendElsewhere, apply, web, runs } = await started(t);
  const desired = await web('10.0.0.1', '10.0.0.3');
  const [kept] = (await web('10.0.0.3')).listeners[0]?.pool.members ?? [];
  await sendElsewhere({
    kind: 'AddServer',
    backend: NAME,
    server: '10.0.0.3:8080',
    address: '10.0.0.3',
    port: 8080,
    keywords: ['id', String(kept?.id), 'weight', '1'],
  });
  const { refused, repaired, beyondRepair, lost } = await apply(desired);
  t.is(refused[0]?.command.kind, 'AddServer');
  t.is(refused[0]?.key, 'default/web');
  t.deepEqual([repaired, beyondRepair, lost], [[NAME], [], undefined]);
  await runs(desired);
});

test('A server that another process removed is added again', async (t) => {
  const { sendElsewhere, apply, web, runs } = await started(t);
  const desired = await web('10.0.0.1');
  const gone = { backend: NAME, server: '10.0.0.2:8080' } as const;
  await sendElsewhere({ kind: 'SetServerState', ...gone, state: 'maint' }, { kind: 'DeleteServer', ...gone });
  const { refused, repaired, beyondRepair } = await apply(desired);
  t.is(refused.length, 1);
  t.deepEqual([repaired, beyondRepair], [[NAME], []]);
  await runs(desired);
});

test('An id that another server has is beyond repair', async (t) => {
  const { sendElsewhere, apply, web } = await started(t);
  const desired = await web('10.0.0.1', '10.0.0.2', '10.0.0.3');
  const id = desired.listeners[0]?.pool.members[2]?.id;
  await sendElsewhere({
    kind: 'AddServer',
    backend: NAME,
    server: 'stranger',
    address: '10.0.0.9',
    port: 1,
    keywords: ['id', String(id), 'weight', '1'],
  });
  const { refused, repaired, beyondRepair, lost } = await apply(desired);
  t.is(refused[0]?.command.kind, 'AddServer');
  t.deepEqual([repaired, beyondRepair, lost], [[], [NAME], undefined]);
});

test('A server of that name and id without a check is beyond repair', async (t) => {
  const { sendElsewhere, apply, web } = await started(t, { 'headgate.io/health-monitor': 'tcp' });
  const desired = await web('10.0.0.1', '10.0.0.2', '10.0.0.3');
  const { name = '', id, address = '', port = 0 } = desired.listeners[0]?.pool.members[2] ?? {};
  const keywords = ['id', String(id), 'weight', '16'];
  await sendElsewhere({ kind: 'AddServer', backend: NAME, server: name, address, port, keywords });
  const { refused, repaired, beyondRepair, lost } = await apply(desired);
  t.is(refused[0]?.command.kind, 'AddServer');
  t.deepEqual([repaired, beyondRepair, lost], [[], [NAME], undefined]);
});

test('A listener that the worker lacks is beyond repair, and the others get their commands', async (t) => {
  const { worker, apply, web, before } = await started(t);
  const absent = 'default:web:tcp:81:v4';
  const withAbsent = (loadBalancer: LoadBalancer) => ({
    ...loadBalancer,
    listeners: [
      ...loadBalancer.listeners.map((each) => ({ ...each, name: absent })),
      ...loadBalancer.listeners,
    ],
  });
  const recorded = Running.booted([withAbsent(before)], (_, line) => 77 + line).get(absent);
  if (recorded !== undefined) worker.running.put(absent, recorded);
  const { acknowledged, repaired, beyondRepair, lost } = await apply(
    withAbsent(await web('10.0.0.1', '10.0.0.2', '10.0.0.3')),
  );
  t.deepEqual([repaired, beyondRepair, lost], [[], [absent], undefined]);
  t.deepEqual(
    acknowledged.map(({ kind }) => kind),
    ['AddServer', 'SetServerState'],
  );
});

test('A lost connection is an outcome, not an exception', async (t) => {
  const { worker, apply, web } = await started(t);
  worker.runtime.close();
  const { acknowledged, lost } = await apply(await web('10.0.0.3'));
  t.deepEqual(acknowledged, []);
  t.is(lost?.code, 'RUNTIME_CLOSED');
});

test('An invalid command is an outcome, and nothing of the batch is sent', async (t) => {
  const { apply, web, before, runs } = await started(t);
  const desired = await web('10.0.0.1', '10.0.0.2', '10.0.0.3');
  const listeners = desired.listeners.map((listener) => ({
    ...listener,
    pool: {
      ...listener.pool,
      members: listener.pool.members.map((each, at) => (at === 2 ? { ...each, name: 'a b' } : each)),
    },
  }));
  const { acknowledged, lost } = await apply({ ...desired, listeners });
  t.deepEqual(acknowledged, []);
  t.like(lost, { code: 'RUNTIME_TOKEN', retry: 'never' });
  await runs(before);
});

const SECRETS = [secret('web-tls', WEB), secret('api-tls', API)];
const PEMS = new Map(SECRETS.map(({ pair }) => [pair.content?.fingerprint, pair.content?.pem.reveal()]));

/** A real HAProxy with a listener that has the certificate WEB as `default/web-tls`. */
async function startedWithTls(t: ExecutionContext) {
  const loopback = new Loopback();
  const withTls = (names: string, pairs: Readonly<Record<string, PemPair>>) => {
    const objects = Object.entries(pairs).map(([name, pair]) => secret(name, pair));
    const annotations = { 'headgate.io/tls-certificate': names };
    return loopback.bindable(loadBalancerOf(translated([service({ annotations }), slice({}), ...objects])));
  };
  const before = await withTls('web-tls', { 'web-tls': WEB });
  const pems = {
    certificate: (_: string, fingerprint: string) => PEMS.get(fingerprint),
    authority: () => '',
    crl: () => '',
  };
  const { worker, certificates, paths, context } = await startRendered(t, [before], { pems });
  const places = { folder: paths.certificates, isRefused: certificates.isRefused };
  const read = async (desired: LoadBalancer) => {
    const running = await readRunning(worker.runtime, [desired], true, context.aclId, {
      certificates: paths.certificates,
    });
    return (name: string) => running.certificate(name)?.fingerprint;
  };
  const plan = (desired: LoadBalancer) => (key: string) =>
    planLoadBalancer({ key, running: worker.running, before, after: desired, certificates: places });
  return {
    paths,
    worker,
    withTls,
    read,
    planOf: (desired: LoadBalancer) => plan(desired)(desired.key),
    write: (desired: LoadBalancer) => certificates.write([desired]),
    kinds: (desired: LoadBalancer) => plan(desired)(desired.key).commands.map(({ kind }) => kind),
    async apply(desired: LoadBalancer) {
      await certificates.write([desired]);
      return applyPlans(worker, [plan(desired)(desired.key)], (keys) => keys.map(plan(desired)));
    },
    /** Without writing files. */
    applyOnly: (desired: LoadBalancer) =>
      applyPlans(worker, [plan(desired)(desired.key)], (keys) => keys.map(plan(desired))),
  };
}

const [WEB_PRINT, API_PRINT] = SECRETS.map(({ pair }) => pair.content?.fingerprint);

test('A certificate is replaced, added and removed by commands, and what HAProxy shows is read back', async (t) => {
  const { withTls, apply, read, kinds, worker } = await startedWithTls(t);
  const renewed = await withTls('web-tls', { 'web-tls': API });
  t.deepEqual(kinds(renewed), ['StageCertificate', 'CommitCertificate']);
  t.deepEqual((await apply(renewed)).refused, []);
  t.is((await read(renewed))('default/web-tls'), API_PRINT);
  t.deepEqual(kinds(renewed), []);
  const two = await withTls('web-tls,api-tls', { 'web-tls': WEB, 'api-tls': API });
  t.deepEqual(kinds(two), [
    'StageCertificate',
    'CommitCertificate',
    'NewCertificate',
    'StageCertificate',
    'CommitCertificate',
    'AddToList',
  ]);
  t.deepEqual((await apply(two)).refused, []);
  const shown = await read(two);
  t.deepEqual([shown('default/web-tls'), shown('default/api-tls')], [WEB_PRINT, API_PRINT]);
  t.deepEqual(
    [...(worker.running.get(two.listeners[0]?.name ?? '')?.certificates ?? [])],
    ['default/web-tls', 'default/api-tls'],
  );
  const one = await withTls('web-tls', { 'web-tls': WEB });
  t.deepEqual(kinds(one), ['RemoveFromList']);
  t.deepEqual((await apply(one)).refused, []);
  t.deepEqual(kinds(two), ['AddToList'], 'The worker still has it');
  t.deepEqual((await apply(two)).refused, []);
});

test('A certificate that HAProxy refuses needs no reload, and leaves no transaction open', async (t) => {
  const { withTls, apply, applyOnly, read, worker, paths } = await startedWithTls(t);
  const renewed = await withTls('web-tls', { 'web-tls': API });
  // With another key than its own HAProxy takes it, and refuses to commit it.
  const file = join(paths.certificates, 'default_web-tls.pem');
  await writeFile(file, `${API.cert}${WEB.key}`);
  const { refusedCertificates, repaired, beyondRepair, lost } = await applyOnly(renewed);
  t.deepEqual([repaired, beyondRepair, lost], [[], [], undefined]);
  t.deepEqual(
    [...new Set(refusedCertificates.map(({ certificate }) => certificate.fingerprint))],
    [API_PRINT],
  );
  t.is((await read(renewed))('default/web-tls'), undefined, 'It has the one before');
  t.is(await worker.runtime.ask(`commit ssl cert ${file}`).then((text) => text.includes('No ongoing')), true);
  t.deepEqual((await apply(renewed)).refused, []);
  t.is((await read(renewed))('default/web-tls'), API_PRINT);
});

test('A transaction that another process has left open does not get the certificate', async (t) => {
  const { withTls, apply, read, worker, paths } = await startedWithTls(t);
  const two = await withTls('web-tls,api-tls', { 'web-tls': WEB, 'api-tls': API });
  t.deepEqual((await apply(two)).refused, []);
  const other = {
    listener: 'x',
    file: join(paths.certificates, 'default_api-tls.pem'),
    certificate: {} as never,
  };
  await worker.runtime.send([{ kind: 'StageCertificate', ...other }]);
  const renewed = await withTls('web-tls,api-tls', { 'web-tls': API, 'api-tls': API });
  const { repaired, beyondRepair, refusedCertificates } = await apply(renewed);
  t.deepEqual([repaired.length, beyondRepair, refusedCertificates], [1, [], []]);
  const shown = await read(renewed);
  t.deepEqual([shown('default/web-tls'), shown('default/api-tls')], [API_PRINT, API_PRINT]);
});

test('Several listeners with one certificate get it by one transaction', async (t) => {
  const { withTls, planOf, write, worker } = await startedWithTls(t);
  const renewed = await withTls('web-tls', { 'web-tls': API });
  await write(renewed);
  const plan = planOf(renewed);
  const { acknowledged } = await applyPlans(worker, [plan, { ...plan, key: 'default/other' }], () => [plan]);
  t.deepEqual(
    acknowledged.map(({ kind }) => kind),
    ['StageCertificate', 'CommitCertificate'],
  );
});

test('A certificate is replaced at once, also if the listener waits for a reload', async (t) => {
  const { withTls, planOf } = await startedWithTls(t);
  const renewed = await withTls('web-tls', { 'web-tls': API });
  const listeners = renewed.listeners.map((each) => ({ ...each, rateLimit: 5 }));
  const { commands, reload } = planOf({ ...renewed, listeners });
  t.is(reload, 'listener-changed');
  t.deepEqual(
    commands.map(({ kind }) => kind),
    ['StageCertificate', 'CommitCertificate'],
  );
});
