// Addresses that the host does not have: a NAT between clients and the load balancer translates a public range to a pool,
// one to one. The status shows what clients use, listeners keep the pool's addresses; real API server, NAT and traffic.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ava from 'ava';
import { ADDRESS_API_VERSION as apiVersion } from '../../agent/kubernetes/object-names.ts';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { TestHost } from '../support/host/agent.ts';
import { TestNetwork } from '../support/host/namespaces.ts';
import { deployDefinitions } from '../support/kube/deploy.ts';
import { kubeNeeds, startKube } from '../support/kube/kube.ts';
import { servicePath } from '../support/kube/kube-objects.ts';

const needs = kubeNeeds();
const test = requires(ava, {
  ...needs,
  programs: [...(needs.programs ?? []), 'ip', 'nft', 'sysctl'],
  haproxy: true,
  root: true,
});

const POOLS = `/apis/${apiVersion}/addresspools`;
const CLAIMS = `/apis/${apiVersion}/addressclaims`;
const bothWays = {
  apiVersion,
  kind: 'AddressPool',
  metadata: { name: 'both' },
  spec: { blocks: ['192.0.2.1'], public: { allowed: ['203.0.113.1'], provisioner: true } },
};
const INSIDE = '10.9.0.96/29';
const PUBLIC = '203.0.113.0/29';
const PORT = 8080;

test('Clients reach a Service by the public address in its status, over a NAT, before and after a restart of the agent', async (t) => {
  const kube = await startKube(t, { leaseNamespace: true });
  t.teardown(() => kube.stop());
  await deployDefinitions(kube);
  const network = await TestNetwork.create(t, ['client', 'nat', 'a', 'm1']);
  for (let at = 96; at < 104; at++)
    await network.run('a', 'ip', 'address', 'add', `10.9.0.${at}/32`, 'dev', 'eth0');
  await network.run('nat', 'sysctl', '-qw', 'net.ipv4.ip_forward=1');
  await network.run('client', 'ip', 'route', 'add', PUBLIC, 'via', network.v4('nat'));
  const table = `table ip nat {
    chain in {
      type nat hook prerouting priority dstnat;
      ip daddr ${PUBLIC} dnat ip prefix to ip daddr map { ${PUBLIC} : ${INSIDE} };
    }
    chain out {
      type nat hook postrouting priority srcnat;
      masquerade;
    }
  }`;
  await network.run('nat', 'nft', table);
  network.serve('m1');

  const directory = await mkdtemp(join(tmpdir(), 'hg-public-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const [program, calls] = [join(directory, 'provision'), join(directory, 'calls')];
  await writeFile(program, `#!/bin/sh\ncat >> ${calls}\n`, { mode: 0o755 });
  const host = await TestHost.create(t, {
    flags: ['--kubeconfig', kube.kubeconfig, '--netns', network.netns('a'), '--provisioner', program],
  });
  const agent = await host.start();
  await host.until('it leads', async () => (await host.status()).addresses.leading, 40_000);
  const spec = (from: string) => ({ blocks: [INSIDE], public: { from } });
  const post = (name: string, from: string) =>
    kube.must('POST', POOLS, { apiVersion, kind: 'AddressPool', metadata: { name }, spec: spec(from) });
  await post('floating', PUBLIC);
  await kube.must('POST', servicePath('default'), {
    metadata: { name: 'web' },
    spec: { type: 'LoadBalancer', ports: [{ name: 'tcp', port: PORT, protocol: 'TCP' }] },
  });
  await kube.must('POST', '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices', {
    metadata: { name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: [network.v4('m1')], conditions: { ready: true } }],
    ports: [{ name: 'tcp', port: PORT, protocol: 'TCP' }],
  });
  const shown = async () => {
    const { status } = await kube.must('GET', servicePath('default', 'web'));
    return (status.loadBalancer.ingress ?? []) as { ip: string; ipMode: string }[];
  };
  await until('it has an address', async () => (await shown()).length === 1);
  const [{ ip, ipMode } = { ip: '', ipMode: '' }] = await shown();
  const [own = ''] = (await host.why('default/web')).addresses;
  const last = (address: string) => Number(address.split('.')[3]);
  t.regex(ip, /^203\.0\.113\./);
  t.is(ipMode, 'Proxy');
  t.is(last(own) - 96, last(ip));
  t.deepEqual((await host.why('default/web')).listeners[0]?.addresses, [own]);
  const [words = ''] = (await host.why('default/web')).announced;
  t.is(words, `Clients use ${ip}, which a NAT outside translates to ${own}`);
  await until('traffic to the public address arrives', async () => (await network.whoServes(ip)) === 'm1');

  const [call = '{}'] = (await readFile(calls, 'utf8')).split('\n');
  t.like(JSON.parse(call), { action: 'assign', address: own, public: ip });

  await agent.stop();
  await host.start();
  await host.until('it leads again', async () => (await host.status()).addresses.leading, 40_000);
  t.deepEqual((await host.why('default/web')).addresses, [own]);
  t.deepEqual(await shown(), [{ ip, ipMode: 'Proxy', ports: [{ port: PORT, protocol: 'TCP' }] } as never]);
  t.is(await network.whoServes(ip), 'm1');

  // Without the translation clients use the address itself, which the Service keeps.
  await kube.must('PATCH', `${POOLS}/floating`, { spec: { public: null } });
  await until('the status shows its own', async () => (await shown())[0]?.ip === own);
  t.deepEqual((await host.why('default/web')).problems, []);
  t.is(await network.whoServes(own), 'm1');

  const { status } = await kube.api('POST', POOLS, {
    apiVersion,
    kind: 'AddressPool',
    metadata: { name: 'two' },
    spec: { blocks: ['192.0.2.1', '192.0.2.9'], public: { from: '203.0.113.1-203.0.113.2' } },
  });
  t.is(status, 422);
});

test('The provisioner answers a public address, or an annotation names one that its pool allows and no other has', async (t) => {
  const kube = await startKube(t, { leaseNamespace: true });
  t.teardown(() => kube.stop());
  await deployDefinitions(kube);
  const directory = await mkdtemp(join(tmpdir(), 'hg-public-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const [program, calls, answer] = ['provision', 'calls', 'answer'].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  // It ends well before it has an answer, too.
  await writeFile(program, `#!/bin/sh\ncat >> ${calls}\ncat ${answer} || :\n`, { mode: 0o755 });
  const host = await TestHost.create(t, {
    flags: ['--kubeconfig', kube.kubeconfig, '--provisioner', program, '--release-after', '1s'],
  });
  const agent = await host.start();
  await host.until('it leads', async () => (await host.status()).addresses.leading, 40_000);
  const pool = (name: string, last: number, rule: object) =>
    kube.must('POST', POOLS, {
      apiVersion,
      kind: 'AddressPool',
      metadata: { name },
      spec: { blocks: [`${host.address(last)}/30`], auto: false, public: rule },
    });
  await pool('answered', 100, { provisioner: true });
  await pool('named', 104, { allowed: ['203.0.113.32/28'] });
  await kube.must('POST', '/api/v1/namespaces', { metadata: { name: 'other' } });
  const serve = (namespace: string, name: string, annotations: Readonly<Record<string, string>>) =>
    kube.must('POST', servicePath(namespace), {
      metadata: { name, annotations },
      spec: { type: 'LoadBalancer', ports: [{ name: 'tcp', port: PORT, protocol: 'TCP' }] },
    });
  const shown = async (namespace: string, name: string) => {
    const { status } = await kube.must('GET', servicePath(namespace, name));
    return ((status.loadBalancer.ingress ?? []) as { ip: string; ipMode: string }[]).map(
      ({ ip, ipMode }) => `${ip} ${ipMode}`,
    );
  };
  const why = async (namespace: string, name: string): Promise<string> => {
    const { status } = await kube.must('GET', servicePath(namespace, name));
    const found = (status.conditions ?? []) as { type: string; reason: string; message: string }[];
    const { reason = '', message = '' } = found.find(({ type }) => type === 'headgate.io/IPAllocated') ?? {};
    return `${reason}: ${message}`;
  };

  await serve('default', 'web', { 'headgate.io/address-pool': 'answered' });
  await until('the status says why it shows nothing', async () =>
    (await why('default', 'web')).startsWith('ProvisionerFailed'),
  );
  t.regex(await why('default', 'web'), /\(public not known yet\).*answered no public address/);
  t.deepEqual(await shown('default', 'web'), []);
  await writeFile(answer, '{"public":"203.0.113.21"}\n');
  await until('it shows the answer', async () => (await shown('default', 'web')).length === 1);
  t.deepEqual(await shown('default', 'web'), ['203.0.113.21 Proxy']);
  const [own = ''] = (await host.why('default/web')).addresses;
  const { items } = await kube.must('GET', CLAIMS);
  t.like(items[0].spec, { address: own, public: '203.0.113.21' });
  t.regex((await host.command('why', [`203.0.113.21:${PORT}`])).stdout, /^Service default\/web: /);
  t.regex((await host.command('list', [])).stdout, /PUBLIC[\s\S]*203\.0\.113\.21/);

  const asks = { 'headgate.io/address-pool': 'named', 'headgate.io/public-address': '203.0.113.33' };
  await serve('default', 'first', asks);
  await until('it has what it names', async () => (await shown('default', 'first')).length === 1);
  t.deepEqual(await shown('default', 'first'), ['203.0.113.33 Proxy']);
  await serve('other', 'thief', asks);
  await until('it has an address', async () => (await shown('other', 'thief')).length === 1);
  t.deepEqual(await shown('other', 'thief'), [`${(await host.why('other/thief')).addresses[0]} Proxy`]);
  t.regex(await why('other', 'thief'), /^AddressPending: .*203\.0\.113\.33: Service "default\/first" has it/);
  await serve('other', 'answer', { ...asks, 'headgate.io/public-address': '203.0.113.21' });
  await until('it is refused', async () => (await why('other', 'answer')).startsWith('AddressPending'));
  t.is((await kube.api('POST', POOLS, bothWays)).status, 422);

  await agent.stop();
  await host.start();
  await host.until('it leads again', async () => (await host.status()).addresses.leading, 40_000);
  t.deepEqual(await shown('default', 'web'), ['203.0.113.21 Proxy']);
  t.deepEqual((await host.why('default/web')).addresses, [own]);

  await kube.must('DELETE', servicePath('default', 'web'));
  await kube.must('DELETE', servicePath('default', 'first'));
  await until(
    'the other one gets it',
    async () => (await shown('other', 'thief'))[0] === '203.0.113.33 Proxy',
  );
  await until('the program is told', async () => (await readFile(calls, 'utf8')).includes('"release"'));
  const released = (await readFile(calls, 'utf8')).split('\n').filter((line) => line.includes('"release"'));
  t.true(released.some((line) => JSON.parse(line).public === '203.0.113.21'));
  // What leaves the agent keeps no public address in its status.
  await kube.must('PATCH', servicePath('other', 'thief'), { spec: { type: 'ClusterIP' } });
  await until('its status is empty', async () => (await shown('other', 'thief')).length === 0);
});
