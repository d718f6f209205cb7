// What pools may refuse and what a Service may live without, on a real API server of both families: rules of
// namespaces and labels, dual stack that falls back, and the end of everything when a Service goes to another class.

import { setTimeout as delay } from 'node:timers/promises';
import ava, { type ExecutionContext } from 'ava';
import { ADDRESS_API_VERSION as apiVersion } from '../../agent/kubernetes/object-names.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { TestHost } from '../support/host/agent.ts';
import { deployDefinitions } from '../support/kube/deploy.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { servicePath } from '../support/kube/kube-objects.ts';

const test = requires(ava, { ...kubeNeeds(), haproxy: true });

const POOLS = `/apis/${apiVersion}/addresspools`;
const CLAIMS = `/apis/${apiVersion}/addressclaims`;
const FINALIZER = 'service.kubernetes.io/load-balancer-cleanup';

let kube: Kube;
test.before(async (t) => {
  kube = await startKube(t, { clusterIPs: '10.96.0.0/16,fd00:96::/112', leaseNamespace: true });
  await kube.must('POST', '/api/v1/namespaces', { metadata: { name: 'tenant' } });
  await deployDefinitions(kube);
});
test.after.always(() => kube?.stop());

// Conformance: spec.ipFamilies, spec.ipFamilyPolicy
test.serial(
  'PreferDualStack takes the family there is and later the other one; RequireDualStack waits for both',
  async (t) => {
    const host = await started(t);
    const [first, second] = [await freePort('::1'), await freePort('::1')];
    // ::1 is all that a host surely has of IPv6: both share it.
    const asking = { 'headgate.io/address-pool': 'both', 'headgate.io/address-sharing-key': 'both' };
    await kube.must('POST', POOLS, pool('both', { blocks: [host.address(100)] }));
    await create('prefer', { port: first, ipFamilyPolicy: 'PreferDualStack' }, asking);
    await create('require', { port: second, ipFamilyPolicy: 'RequireDualStack' }, asking);
    const own = host.address(100);
    await until('the one has its address', async () => (await published('prefer')).join() === own);
    await until('the other waits', async () => (await reasonOf('require')) === 'AddressPending');
    t.deepEqual(await published('require'), []);

    await kube.must('PUT', `${POOLS}/both`, {
      ...pool('both', { blocks: [host.address(100), '::1'] }),
      metadata: { name: 'both', resourceVersion: await versionOf(`${POOLS}/both`) },
    });
    for (const name of ['prefer', 'require'])
      await until(`${name} has both`, async () => (await published(name)).join() === `${own},::1`);

    const { spec } = await kube.must('GET', servicePath('default', 'prefer'));
    await change('prefer', {
      ipFamilyPolicy: 'SingleStack',
      ipFamilies: spec.ipFamilies.slice(0, 1),
      clusterIPs: spec.clusterIPs.slice(0, 1),
    });
    await until('one family is given up', async () => (await published('prefer')).join() === own);
    t.deepEqual(await published('require'), [own, '::1']);
  },
);

test.serial('The condition Ready and an Event follow each version of a pool', async (t) => {
  const host = await started(t);
  await kube.must('POST', POOLS, pool('ready', { blocks: [host.address(100)] }));
  const condition = async () => {
    const { metadata, status = {} } = await kube.must('GET', `${POOLS}/ready`);
    const ready = status.conditions?.find(({ type }: { type: string }) => type === 'Ready');
    return ready?.observedGeneration === metadata.generation ? ready : undefined;
  };
  await until('it is ready', async () => (await condition())?.reason === 'Active');
  const first = await condition();
  t.is(first.status, 'True');
  await kube.must('PATCH', `${POOLS}/ready`, { spec: { draining: true } });
  await until('it drains', async () => (await condition())?.reason === 'Draining');
  t.is((await condition()).lastTransitionTime, first.lastTransitionTime);
  await until('both Events are there', async () => {
    const { items } = await kube.must('GET', '/apis/events.k8s.io/v1/namespaces/default/events');
    const reasons = items
      .filter(({ regarding }: { regarding: { name: string } }) => regarding.name === 'ready')
      .map(({ reason }: { reason: string }) => reason);
    return reasons.includes('Active') && reasons.includes('Draining');
  });
});

// Conformance: pools for some Services
test.serial('A pool for a namespace and labels gives no address to other Services', async (t) => {
  const host = await started(t);
  const serviceAllocation = {
    namespaces: ['tenant'],
    serviceSelector: { matchLabels: { tier: 'front' } },
  };
  await kube.must('POST', POOLS, pool('rules', { blocks: [`${host.address(100)}/31`], serviceAllocation }));
  const asking = { 'headgate.io/address-pool': 'rules' };
  const front = { tier: 'front' };
  await create('elsewhere', {}, asking, { labels: front });
  await create('unlabelled', {}, asking, { namespace: 'tenant' });
  await create('named', {}, { 'headgate.io/load-balancer-ips': host.address(101) }, { labels: front });
  await create('right', {}, asking, { namespace: 'tenant', labels: front });
  await until('who may has one', async () => (await published('right', 'tenant')).length === 1);
  for (const [name, namespace] of [
    ['elsewhere', 'default'],
    ['unlabelled', 'tenant'],
    ['named', 'default'],
  ] as const) {
    await until(`${name} is refused`, async () => {
      const reason = await reasonOf(name, namespace);
      return reason !== undefined && reason !== 'Pending';
    });
    t.deepEqual(await published(name, namespace), [], name);
  }
  // The label is taken away again: the address stays.
  const before = await published('right', 'tenant');
  const path = servicePath('tenant', 'right');
  await kube.must('PATCH', path, { metadata: { labels: { tier: null } } }, 'application/merge-patch+json');
  await host.until('it says so', async () =>
    (await host.why('tenant/right')).problems.some(({ reason }) => reason === 'AddressOutOfPool'),
  );
  t.deepEqual(await published('right', 'tenant'), before);
});

// Conformance: spec.loadBalancerClass
test.serial(
  "A Service that changes its class loses the agent's part, and is not written again",
  async (t) => {
    const host = await started(t);
    await kube.must('POST', POOLS, pool('classes', { blocks: [`${host.address(100)}/31`] }));
    const asking = { 'headgate.io/address-pool': 'classes' };
    await create('moves', { loadBalancerClass: 'headgate.io/agent' }, asking);
    await until('it is served', async () => (await published('moves')).length === 1);
    t.true((await host.config()).includes('default:moves'));

    await change('moves', { type: 'ClusterIP', loadBalancerClass: null });
    await change('moves', { type: 'LoadBalancer', loadBalancerClass: 'example.org/other' });
    const read = () => kube.must('GET', servicePath('default', 'moves'));
    await until('nothing of ours is left', async () => {
      const { metadata, status } = await read();
      const conditions: { type: string }[] = status.conditions ?? [];
      return (
        !(metadata.finalizers ?? []).includes(FINALIZER) &&
        status.loadBalancer.ingress === undefined &&
        conditions.every(({ type }) => !type.startsWith('headgate.io/'))
      );
    });
    await host.until('no listener is left', async () => !(await host.config()).includes('default:moves'));
    await until('its address is held', async () => {
      const { items } = await kube.must('GET', CLAIMS);
      return items.some(
        ({ spec }: { spec: { service: string; heldUntil?: string } }) =>
          spec.service === 'default/moves' && spec.heldUntil !== undefined,
      );
    });
    const theirs = { status: { loadBalancer: { ingress: [{ ip: '192.0.2.77' }] } } };
    const path = `${servicePath('default', 'moves')}/status`;
    const { metadata } = await kube.must('PATCH', path, theirs, 'application/merge-patch+json');
    // What comes after it has been seen and written.
    await create('after', {}, asking);
    await until('the next one is told', async () => (await published('after')).length === 1);
    t.is((await read()).metadata.resourceVersion, metadata.resourceVersion);
  },
);

// Conformance: a pool that is deleted and created again
test.serial('A pool that is deleted and created again has the same status again', async (t) => {
  const host = await started(t);
  const made = async () => kube.must('POST', POOLS, pool('again', { blocks: [`${host.address(100)}/31`] }));
  const told = async () => {
    const { status } = await kube.must('GET', `${POOLS}/again`);
    if (status === undefined) return undefined;
    // The time is the new pool's own.
    for (const condition of status.conditions) delete condition.lastTransitionTime;
    return status;
  };
  await made();
  await until('its status is there', async () => (await told())?.ipv4?.free === '2');
  const before = await told();
  await kube.must('DELETE', `${POOLS}/again`);
  await made();
  await until('it is there again', async () => (await told()) !== undefined);
  t.deepEqual(await told(), before);
});

test.serial('The status of an unreadable pool says why', async (t) => {
  const host = await started(t);
  const told = async (name: string) => (await kube.must('GET', `${POOLS}/${name}`)).status;
  const change = (name: string, blocks: readonly string[]) =>
    kube.must('PATCH', `${POOLS}/${name}`, { spec: { blocks } });
  await kube.must('POST', POOLS, pool('twisted', { blocks: ['2001:db8::9-2001:db8::1'] }));
  await until('it says so', async () => (await told('twisted'))?.state === 'Invalid');
  t.regex((await told('twisted')).message, /"2001:db8::9-2001:db8::1" is not/);
  await change('twisted', [host.address(120)]);
  await until('it is mended', async () => (await told('twisted')).state === 'Active');
  t.is((await told('twisted')).message, undefined);
  await change('twisted', ['224.0.0.0/8']);
  await until('it says so again', async () => (await told('twisted')).state === 'Invalid');
  t.is((await told('twisted')).ipv4.free, '1', 'It counts on as it was');
  await kube.must('DELETE', `${POOLS}/twisted`);
});

test.serial('The first pool takes no address from a Service that requested it before', async (t) => {
  const host = await started(t);
  for (const { metadata } of (await kube.must('GET', POOLS)).items)
    await kube.must('DELETE', `${POOLS}/${metadata.name}`);
  await host.until('no pool is left', async () => (await host.status()).addresses.pools.length === 0);
  const names = { 'headgate.io/load-balancer-ips': host.address(130) };
  await create('settled', {}, names);
  await until('it has what it names', async () => (await published('settled')).join() === host.address(130));
  await kube.must('POST', POOLS, pool('first', { blocks: [host.address(131)] }));
  await create('late', { port: 8081 }, names);
  await until('who comes later is refused', async () => (await reasonOf('late')) === 'AddressNotInPool');
  t.deepEqual(await published('settled'), [host.address(130)]);
  t.is(await reasonOf('settled'), 'Allocated');
  t.deepEqual((await host.why('default/settled')).listeners[0]?.addresses, [host.address(130)]);
});

test.serial('The first pool leaves the ports of Services that share an address', async (t) => {
  const host = await started(t);
  for (const { metadata } of (await kube.must('GET', POOLS)).items)
    await kube.must('DELETE', `${POOLS}/${metadata.name}`);
  await host.until('no pool is left', async () => (await host.status()).addresses.pools.length === 0);
  const address = host.address(140);
  const ports = [await freePort('::1'), await freePort('::1')];
  const both = ['first-of-two', 'second-of-two'];
  for (const [at, name] of both.entries())
    await create(name, { port: ports[at] ?? 0 }, { 'headgate.io/load-balancer-ips': address });
  for (const name of both)
    await until('it has what it names', async () => (await published(name)).join() === address);
  await kube.must('POST', POOLS, pool('of-both', { blocks: [address] }));
  await host.until('the pool is known', async () =>
    (await host.status()).addresses.pools.some(({ name, used }) => name === 'of-both' && used === '1'),
  );
  for (const name of both) {
    t.deepEqual((await host.why(`default/${name}`)).listeners[0]?.addresses, [address]);
    t.deepEqual((await host.why(`default/${name}`)).problems, []);
    t.is(await reasonOf(name), 'Allocated');
  }
});

test.serial('When the last pool goes, an older Service takes no address of another Service', async (t) => {
  const host = await started(t);
  for (const { metadata } of (await kube.must('GET', POOLS)).items)
    await kube.must('DELETE', `${POOLS}/${metadata.name}`);
  const [own, port] = [host.address(110), await freePort('::1')];
  await kube.must('POST', POOLS, pool('last', { blocks: [own, host.address(111)] }));
  await create('older', { port }, { 'headgate.io/load-balancer-ips': host.address(112) });
  // Times of creation are whole seconds.
  await delay(1_010 - (Date.now() % 1_000));
  await create('younger', { port }, { 'headgate.io/load-balancer-ips': own });
  await until('it has its address', async () => (await published('younger')).join() === own);
  await kube.must('PATCH', servicePath('default', 'older'), {
    metadata: { annotations: { 'headgate.io/load-balancer-ips': own } },
  });
  await host.until('the other one is told who has it', async () =>
    (await host.why('default/older')).problems.some(({ reason }) => reason === 'AddressInUse'),
  );
  await kube.must('DELETE', `${POOLS}/last`);
  await host.until('that is known', async () =>
    (await host.why('default/younger')).problems.some(({ reason }) => reason === 'AddressOutOfPool'),
  );
  t.deepEqual((await host.why('default/younger')).listeners[0]?.addresses, [own]);
  t.deepEqual((await host.why('default/older')).listeners[0]?.addresses ?? [], []);
});

async function started(t: ExecutionContext): Promise<TestHost> {
  const host = await TestHost.create(t, { flags: ['--kubeconfig', kube.kubeconfig] });
  const agent = await host.start();
  // It gives the lead back, so that the next one need not wait for it.
  t.teardown(async () => {
    if (!agent.hasExited) await agent.stop();
  });
  await host.until('it leads', async () => (await host.status()).addresses.leading, 40_000);
  return host;
}

const pool = (name: string, spec: object) => ({ apiVersion, kind: 'AddressPool', metadata: { name }, spec });

async function create(
  name: string,
  { port = 8080, ...spec }: { readonly port?: number; readonly [field: string]: unknown },
  annotations: object,
  { namespace = 'default', labels = {} } = {},
): Promise<void> {
  const ports = [{ name: 'http', port, protocol: 'TCP' }];
  const metadata = { name, annotations, labels };
  await kube.must('POST', servicePath(namespace), {
    metadata,
    spec: { type: 'LoadBalancer', ports, ...spec },
  });
}

const change = (name: string, spec: object) =>
  kube.must('PATCH', servicePath('default', name), { spec }, 'application/merge-patch+json');

const versionOf = async (path: string) => (await kube.must('GET', path)).metadata.resourceVersion;

async function published(name: string, namespace = 'default'): Promise<readonly string[]> {
  const { status } = await kube.must('GET', servicePath(namespace, name));
  return (status.loadBalancer.ingress ?? []).map(({ ip }: { ip: string }) => ip);
}

/** Why it has no address. */
async function reasonOf(name: string, namespace = 'default'): Promise<string | undefined> {
  const { status } = await kube.must('GET', servicePath(namespace, name));
  const conditions: { type: string; reason: string }[] = status.conditions ?? [];
  return conditions.find(({ type }) => type === 'headgate.io/IPAllocated')?.reason;
}
