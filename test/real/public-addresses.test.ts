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
