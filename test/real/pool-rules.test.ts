// The rule `allowed` of a pool on a real API server: what its definition refuses, whom the agent refuses and how it is
// reported, and what a stricter or broken rule leaves.

import ava from 'ava';
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
const EVENTS = '/apis/events.k8s.io/v1/namespaces/default/events';

let kube: Kube;
test.before(async (t) => {
  kube = await startKube(t, { leaseNamespace: true });
  await deployDefinitions(kube);
});
test.after.always(() => kube?.stop());

const body = (name: string, spec: object) => ({ apiVersion, kind: 'AddressPool', metadata: { name }, spec });

test.serial(
  'The API server refuses a rule that is wrong, and keeps a misspelled one for the agent',
  async (t) => {
    const ports = [80, '443', '8000-8999', '1-65535'];
    const right = {
      namespaces: ['shop'],
      namespaceSelector: { matchLabels: { team: 'shop' } },
      ports,
      protocols: ['TCP', 'UDP'],
      addressesPerNamespace: 3,
    };
    const dry = `${POOLS}?dryRun=All`;
    const post = (allowed: unknown) =>
      kube.api('POST', dry, body('rule', { blocks: ['192.0.2.1'], allowed }));
    const taken = await post(right);
    t.is(taken.status, 201, JSON.stringify(taken.body));
    t.is((await post({ ports: Array.from({ length: 100 }, (_, at) => `${at + 1}-${at + 2}`) })).status, 201);
    for (const wrong of [
      {},
      { ports: [] },
      { ports: [0] },
      { ports: [65536] },
      { ports: ['443-80'] },
      { ports: ['80-70000'] },
      { ports: ['http'] },
      { ports: [true] },
      { protocols: ['tcp'] },
      { protocols: [] },
      { namespaces: [] },
      { namespaceSelector: {} },
      { addressesPerNamespace: 0 },
    ])
      t.is((await post(wrong)).status, 422, JSON.stringify(wrong));
    const { body: kept } = await post({ ports: [80], namespace: ['shop'] });
    t.deepEqual((kept as { spec: { allowed: object } }).spec.allowed, { ports: [80], namespace: ['shop'] });
  },
);

test.serial(
  'A rule refuses by condition, Event and why; a stricter one leaves what there is; a misspelled one gives nothing new',
  async (t) => {
    const host = await TestHost.create(t, { flags: ['--kubeconfig', kube.kubeconfig] });
    await host.start();
    await host.until('it leads', async () => (await host.status()).addresses.leading, 40_000);
    const [first, second] = [await freePort('::1'), await freePort('::1')];
    const allowed = {
      namespaceSelector: { matchLabels: { team: 'shop' } },
      ports: [first],
      addressesPerNamespace: 1,
    };
    const own = { metadata: { name: 'shop', labels: { team: 'shop' } } };
    await kube.must('POST', '/api/v1/namespaces', own);
    await kube.must('POST', POOLS, body('rules', { blocks: [`${host.address(100)}/30`], allowed }));
    await create('shop', 'web', first);
    await until('its namespace has the label', async () => (await published('shop', 'web')).length === 1);
    await create('default', 'stranger', first);
    await create('shop', 'ports', second);
    await create('shop', 'more', first);
    const told: readonly (readonly [string, string, string])[] = [
      ['default', 'stranger', 'pool "rules" is not for namespace "default" (allowed.namespaceSelector)'],
      ['shop', 'ports', `pool "rules" allows only ports ${first} (allowed.ports), not TCP port ${second}`],
      [
        'shop',
        'more',
        'pool "rules" gives namespace "shop" at most 1 address (allowed.addressesPerNamespace)',
      ],
    ];
    for (const [namespace, name, words] of told) {
      await until(`${name} is refused`, async () => (await condition(namespace, name)).includes(words));
      const { problems } = await host.why(`${namespace}/${name}`);
      t.true(
        problems.some(({ message }) => message.includes(words)),
        name,
      );
      t.deepEqual(await published(namespace, name), []);
    }
    await until('an Event names the rule', async () => {
      const { items } = await kube.must('GET', EVENTS);
      return items.some(({ note }: { note: string }) => note.includes(told[0]?.[2] ?? '-'));
    });

    // The namespace gets the label: the Service that waits gets its address.
    await kube.must('PATCH', '/api/v1/namespaces/default', { metadata: { labels: { team: 'shop' } } });
    await until('its turn has come', async () => (await published('default', 'stranger')).length === 1);

    // Stricter: the holder keeps its address and its port, and gets no other one.
    const [address = ''] = await published('shop', 'web');
    const rule = (value: object) => kube.must('PATCH', `${POOLS}/rules`, { spec: { allowed: value } });
    await rule({ ports: [second] });
    await host.until('it is told', async () =>
      (await host.why('shop/web')).problems.some(({ reason }) => reason === 'AddressOutOfPool'),
    );
    await kube.must(
      'PATCH',
      servicePath('shop', 'web'),
      { spec: { ports: [first, first + 1].map((port) => ({ name: `p${port}`, port, protocol: 'TCP' })) } },
      'application/merge-patch+json',
    );
    await host.until('the new port is refused', async () =>
      (await host.why('shop/web')).problems.some(({ reason }) => reason === 'AddressNotAllowed'),
    );
    const { listeners } = await host.why('shop/web');
    t.deepEqual(
      listeners.map(({ port, addresses }) => [port, addresses]),
      [
        [first, [address]],
        [first + 1, []],
      ],
    );

    // Misspelled: nothing new for anyone, and the pool says why.
    await rule({ prots: [second] });
    await until('the pool says so', async () => {
      const { status } = await kube.must('GET', `${POOLS}/rules`);
      return status?.state === 'Invalid' && status.message.includes('allowed.prots: Unknown key');
    });
    await create('default', 'late', second);
    await until('a new one is refused', async () =>
      (await condition('default', 'late')).includes('cannot be read'),
    );
    t.deepEqual(await published('shop', 'web'), [address]);
  },
);

async function create(namespace: string, name: string, port: number): Promise<void> {
  const spec = { type: 'LoadBalancer', ports: [{ name: 'one', port, protocol: 'TCP' }] };
  await kube.must('POST', servicePath(namespace), { metadata: { name }, spec });
}

async function published(namespace: string, name: string): Promise<readonly string[]> {
  const { status } = await kube.must('GET', servicePath(namespace, name));
  return (status.loadBalancer.ingress ?? []).map(({ ip }: { ip: string }) => ip);
}

async function condition(namespace: string, name: string): Promise<string> {
  const { status } = await kube.must('GET', servicePath(namespace, name));
  const conditions: { type: string; message: string }[] = status.conditions ?? [];
  return conditions.find(({ type }) => type === 'headgate.io/IPAllocated')?.message ?? '';
}
