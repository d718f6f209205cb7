// Addresses of pools in a real cluster: objects of ours on a real API server, one or two whole agents, real HAProxy.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { ADDRESS_API_VERSION as apiVersion } from '../../agent/kubernetes/object-names.ts';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { type RunningAgent, TestHost } from '../support/host/agent.ts';
import { deployDefinitions } from '../support/kube/deploy.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { servicePath } from '../support/kube/kube-objects.ts';
import { VIP_PORT } from '../support/values/service-objects.ts';

const test = requires(ava, { ...kubeNeeds(), haproxy: true });

const POOLS = `/apis/${apiVersion}/addresspools`;
const CLAIMS = `/apis/${apiVersion}/addressclaims`;

let kube: Kube;
test.before(async (t) => {
  kube = await startKube(t, { leaseNamespace: true });
});
test.after.always(() => kube?.stop());

const service = (name: string, spec: object = {}, annotations: object = {}) => ({
  metadata: { name, annotations },
  spec: { type: 'LoadBalancer', ports: [{ name: 'http', port: VIP_PORT, protocol: 'TCP' }], ...spec },
});

/** What the status of a Service shows. */
async function published(name: string): Promise<readonly string[]> {
  const { status } = await kube.must('GET', servicePath('default', name));
  return (status.loadBalancer.ingress ?? []).map(({ ip }: { ip: string }) => ip);
}

interface ClaimSpec {
  readonly address: string;
  readonly service: string;
  readonly serviceUID?: string;
  readonly heldUntil?: string;
}

async function claims(): Promise<readonly ClaimSpec[]> {
  const { items } = await kube.must('GET', CLAIMS);
  return items.map(({ spec }: { spec: ClaimSpec }) => spec);
}

const claimOf = async (name: string) => (await claims()).find((spec) => spec.service === `default/${name}`);

const pool = (name: string, ...blocks: string[]) => ({
  apiVersion,
  kind: 'AddressPool',
  metadata: { name },
  spec: { blocks },
});

const hostOf = (t: ExecutionContext, ...more: string[]) =>
  TestHost.create(t, { flags: ['--kubeconfig', kube.kubeconfig, ...more] });

/** Starts the agent; at the end of the test it gives the lead back, so that the next one need not wait for it. */
async function start(t: ExecutionContext, host: TestHost): Promise<RunningAgent> {
  const agent = await host.start();
  t.teardown(async () => {
    if (!agent.hasExited) await agent.stop();
  });
  return agent;
}

/** The address that HAProxy binds for it. */
async function served(host: TestHost, name: string): Promise<string> {
  let address = '';
  await host.until(`${name} is served`, async () => {
    [address = ''] = (await host.why(`default/${name}`)).addresses;
    return address !== '' && (await host.config()).includes(`${address}:${VIP_PORT}`);
  });
  return address;
}

test.serial('Two agents without CRDs have the same addresses, even with an old file', async (t) => {
  const flags = ['--pools', '[{name: files, blocks: [127.9.8.0/28]}]'];
  const [one, two] = [await hostOf(t, ...flags), await hostOf(t, ...flags)];
  const names = ['file-a', 'file-b', 'file-c'];
  for (const name of names) await kube.must('POST', servicePath('default'), service(name));
  const agent = await start(t, one);
  const addressesOn = (host: TestHost) =>
    Promise.all(names.map(async (name) => (await host.why(`default/${name}`)).addresses.join()));
  const areTold = async () => (await Promise.all(names.map(published))).every((shown) => shown.length === 1);
  await until('all are told', areTold);
  const own = await addressesOn(one);

  const { items } = JSON.parse(await one.stateFile('addresses/claims.json'));
  for (const [at, { spec }] of items.entries()) spec.address = items[(at + 1) % items.length].spec.address;
  for (const item of items) item.metadata.name = item.spec.address.replaceAll('.', '-');
  await mkdir(join(two.stateDir, 'addresses'));
  await writeFile(
    join(two.stateDir, 'addresses', 'claims.json'),
    JSON.stringify({ apiVersion: 'v1', kind: 'List', items }),
  );
  await start(t, two);
  await two.until('it has what is told', async () => (await addressesOn(two)).join() === own.join());
  t.like((await two.status()).addresses, { home: 'file', leading: false });

  await kube.must('POST', servicePath('default'), service('file-late'));
  names.push('file-late');
  await until('it is told, too', areTold);
  await two.until('both have it', async () => {
    const [here, there] = [await addressesOn(one), await addressesOn(two)];
    return here[3] !== '' && here.join() === there.join();
  });
  const all = await addressesOn(one);
  t.deepEqual(all.slice(0, 3), own);
  await agent.stop();
  await two.until('the other one leads', async () => (await two.status()).addresses.leading, 40_000);
  t.deepEqual(await addressesOn(two), all);
  for (const name of names) await kube.must('DELETE', servicePath('default', name));
  await two.until('nothing is left', async () => !(await two.config()).includes('file-'));
});

test.serial(
  'Claims are in a file without CRDs, and in the cluster once it has them, with the same addresses',
  async (t) => {
    const host = await hostOf(t, '--pools', '[{name: early, blocks: [127.9.9.0/28]}]');
    await kube.must('POST', servicePath('default'), service('early'));
    await start(t, host);
    const address = await served(host, 'early');
    await until('the status says it', async () => (await published('early'))[0] === address);
    t.like((await host.status()).addresses, { home: 'file', leading: true });

    await deployDefinitions(kube);
    await host.until(
      'the cluster has the claim',
      async () => (await claimOf('early'))?.address === address,
      40_000,
    );
    t.is((await host.why('default/early')).addresses[0], address);
    await host.until('all is kept', async () => (await host.status()).addresses.unkept === 0);
    t.like((await host.status()).addresses, { home: 'cluster', leading: true });
    await kube.must('DELETE', servicePath('default', 'early'));
    await until('the address is held', async () => (await claimOf('early'))?.heldUntil !== undefined);
    await kube.must('DELETE', CLAIMS.concat('/', address.replaceAll('.', '-')));
  },
);

test.serial(
  'A Service gets its claim first and then its status, and has the same address when it is back',
  async (t) => {
    const host = await hostOf(t);
    const block = `${host.address(100)}-${host.address(107)}`;
    await kube.must('POST', POOLS, pool('public', block));
    const agent = await start(t, host);
    await host.until('the agent leads', async () => (await host.status()).addresses.leading);
    await kube.must('POST', servicePath('default'), service('web'));
    await until('the status says it', async () => {
      const [address] = await published('web');
      if (address === undefined) return false;
      // Whatever the status says is in a claim by then.
      t.is((await claimOf('web'))?.address, address);
      return true;
    });
    const { metadata } = await kube.must('GET', servicePath('default', 'web'));
    t.is((await claimOf('web'))?.serviceUID, metadata.uid);
    t.deepEqual(metadata.finalizers, ['service.kubernetes.io/load-balancer-cleanup']);
    const [address = ''] = await published('web');
    t.is(await served(host, 'web'), address);
    await host.until('the pool says so', async () => {
      const { status } = await kube.must('GET', `${POOLS}/public`);
      return status?.ipv4?.used === '1' && status.ipv4.free === '7' && status.state === 'Active';
    });

    // Deleting the claim of a Service that is there changes nothing.
    const name = address.replaceAll('.', '-');
    await kube.must('DELETE', `${CLAIMS}/${name}`);
    await until('it is written again', async () => (await claimOf('web'))?.address === address);

    await kube.must('DELETE', servicePath('default', 'web'));
    await until('the address is held', async () => (await claimOf('web'))?.heldUntil !== undefined);
    for (const other of ['a', 'b', 'c', 'd']) {
      await kube.must('POST', servicePath('default'), service(other));
      await until(`${other} has one`, async () => (await published(other)).length === 1);
      t.not((await published(other))[0], address);
    }
    await kube.must('POST', servicePath('default'), service('web'));
    await until('it is back', async () => (await published('web'))[0] === address);
    t.is((await claimOf('web'))?.heldUntil, undefined);
    t.true((await agent.metrics())('headgate_claim_writes_total', { result: 'done' }) >= 8);
  },
);

test.serial('Addresses stay over a restart of the agent, even without an API server', async (t) => {
  const host = await hostOf(t);
  await kube.must('POST', POOLS, pool('restart', `${host.address(100)}-${host.address(107)}`));
  await kube.must(
    'POST',
    servicePath('default'),
    service('stay', {}, { 'headgate.io/address-pool': 'restart' }),
  );
  const first = await start(t, host);
  const address = await served(host, 'stay');
  await until('the status says it', async () => (await published('stay'))[0] === address);
  const config = await host.config();
  await first.stop();
  await kube.killApiServer();
  const second = await start(t, host);
  t.is((await host.why('default/stay')).addresses[0], address);
  t.like((await host.status()).addresses, { home: 'unknown', leading: false });
  t.is(await host.config(), config);
  await kube.startApiServer();
  await host.until('it leads again', async () => (await host.status()).addresses.leading, 40_000);
  t.is((await host.why('default/stay')).addresses[0], address);
  t.is((await claimOf('stay'))?.address, address);
  await second.stop();
});

test.serial(
  'Two agents of one cluster have the same addresses and the same configuration; only one writes',
  async (t) => {
    const [one, two] = [await hostOf(t), await hostOf(t)];
    // A loopback network that both may bind.
    await kube.must('POST', POOLS, pool('pair', '127.8.8.0/27'));
    const names = Array.from({ length: 8 }, (_, index) => `pair-${index}`);
    const asking = { 'headgate.io/address-pool': 'pair' };
    const shared = { ...asking, 'headgate.io/address-sharing-key': 'front' };
    const spec = (port: number) => ({ ports: [{ name: 'http', port, protocol: 'TCP' }] });
    for (const [index, name] of names.entries()) {
      const isShared = index % 2 === 1;
      const body = service(name, spec(VIP_PORT + index), isShared ? shared : asking);
      await kube.must('POST', servicePath('default'), body);
    }
    const agents = [await start(t, one), await start(t, two)];
    const addressesOn = async (host: TestHost) =>
      Promise.all(names.map(async (name) => (await host.why(`default/${name}`)).addresses.join()));
    await one.until('both have all of them', async () => {
      const [own, other] = [await addressesOn(one), await addressesOn(two)];
      return own.every((address) => address !== '') && own.join(' ') === other.join(' ');
    });
    const own = await addressesOn(one);
    t.is(new Set(own.filter((_, index) => index % 2 === 1)).size, 1);
    t.is(new Set(own).size, 5);
    for (const [index, name] of names.entries())
      await until(`${name} is told`, async () => (await published(name))[0] === own[index]);
    const leading = await Promise.all(
      [one, two].map(async (host) => (await host.status()).addresses.leading),
    );
    t.is(leading.filter(Boolean).length, 1);
    const writes = await Promise.all(
      agents.map(async (agent) => (await agent.metrics())('headgate_claim_writes_total', { result: 'done' })),
    );
    t.deepEqual(
      writes.map((count) => count > 0),
      leading,
    );
    // All but the places of their own sockets and files, the numbers of ACLs, which go by who came first, and the hash of
    // the whole that those are part of.
    const bytes = async (host: TestHost) =>
      (await host.config())
        .replaceAll(host.directory, 'DIR')
        .replaceAll(/^ *description .*$/gm, '')
        .replaceAll(/ -u \d+ /g, ' ');
    for (const host of [one, two])
      await host.until('its file has all of them', async () => {
        const text = await host.config();
        return names.every((name) => text.includes(`default:${name}:`));
      });
    const areSame = async () => (await bytes(one)) === (await bytes(two));
    await one.until('both files are written', areSame).catch(() => undefined);
    t.is(await bytes(one), await bytes(two));

    // The leader ends: the other agent continues with the same claims.
    const leader = leading[0] ? 0 : 1;
    const [gone, left] = leader === 0 ? [agents[0], two] : [agents[1], one];
    await gone?.stop();
    await left.until('the other leads', async () => (await left.status()).addresses.leading, 40_000);
    t.deepEqual(await addressesOn(left), own);
    await kube.must('POST', servicePath('default'), service('pair-late', {}, asking));
    await until('a new Service gets one of it', async () => (await published('pair-late')).length === 1);
  },
);

test.serial('A reserved address goes to its Service, and another Service waits', async (t) => {
  const host = await hostOf(t);
  const [own, other] = [host.address(120), host.address(121)];
  await kube.must('POST', POOLS, pool('reserved', own, other));
  await kube.must('POST', CLAIMS, {
    apiVersion,
    kind: 'AddressClaim',
    metadata: { name: 'kept-aside' },
    spec: { address: own, reserved: true, service: 'default/later' },
  });
  const ask = (address: string) => ({ 'headgate.io/load-balancer-ips': address });
  await kube.must('POST', servicePath('default'), service('greedy', {}, ask(own)));
  await start(t, host);
  await until('it is refused', async () => {
    const { status } = await kube.must('GET', servicePath('default', 'greedy'));
    const [condition] = status.conditions ?? [];
    return condition?.reason === 'AddressInUse' && condition.message.includes('kept-aside');
  });
  await kube.must(
    'POST',
    servicePath('default'),
    service('later', {}, { 'headgate.io/address-pool': 'reserved' }),
  );
  await until('it gets its own', async () => (await published('later'))[0] === own);
  await kube.must('DELETE', `${CLAIMS}/kept-aside`);
  await kube.must('DELETE', servicePath('default', 'later'));
  await until('who waited gets it', async () => (await published('greedy'))[0] === own);
  t.is((await claimOf('greedy'))?.address, own);
});
