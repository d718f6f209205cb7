// Runs the container image HEADGATE_CONTAINER, which `make container` has built, on hosts beside a client and a member.
// buildah's chroot, and a network and process namespace, stand in for a container engine.

import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { VIPS } from '../support/bgp/bgp-world.ts';
import { HOST_ASN, ROUTER_ASN, TestRouter } from '../support/bgp/test-router.ts';
import { Container, type PodAccess } from '../support/host/container.ts';
import { TestNetwork } from '../support/host/namespaces.ts';
import { deploy } from '../support/kube/deploy.ts';
import { Kube } from '../support/kube/kube.ts';
import { servicePath } from '../support/kube/kube-objects.ts';
import { MEMBER_PORT, webObjects } from '../support/values/service-objects.ts';

const test = requires(ava, { root: true, programs: ['buildah', 'unshare', 'curl', 'bird', 'sysctl', 'ip'] });

const image = process.env.HEADGATE_CONTAINER ?? '';
const MEMBER = `require('http').createServer((_, response) => response.end('the member')).listen(${MEMBER_PORT})`;
const ANCHOR = '10.9.0.1';
const VIP = '10.9.1.1';

test.serial(
  'A container serves a request, its HAProxy outlives the agent, and it ends with SIGTERM',
  async (t) => {
    t.timeout(240_000);
    const network = await TestNetwork.create(t, ['lb', 'client', 'member']);
    network.start('member', process.execPath, '-e', MEMBER);
    const vip = network.v4('lb');
    const objects = webObjects({ address: vip, port: 80, members: [network.v4('member')] });
    const container = await Container.start(t, { image, network, host: 'lb', objects });
    const get = async (host: string, url: string) =>
      (await network.try(host, 'curl', '-s', '-m', '3', url)).stdout;
    const ask = () => get('client', `http://${vip}/`);
    await until('the member answers', async () => (await ask()) === 'the member', {
      seconds: 60,
      seen: () => container.log,
    });

    const before = await container.processes();
    const { had, given } = await container.capabilities(before.agent);
    t.is(had, given);
    process.kill(before.agent, 'SIGKILL');
    await until('another agent runs', async () => {
      const { agent } = await container.processes();
      return agent > 0 && agent !== before.agent;
    });
    t.is(await ask(), 'the member');
    t.is((await container.processes()).haproxy, before.haproxy);
    const scrape = () => get('lb', 'http://127.0.0.1:9180/metrics');
    await until('it answers a scrape', async () => /^headgate_build_info/m.test(await scrape()));
    t.is(await container.written(), '');
    t.is(await container.stop(), 0, container.log);
  },
);

test.serial('Two containers are a pair: when one ends, the other serves its addresses', async (t) => {
  t.timeout(240_000);
  const network = await TestNetwork.create(t, ['one', 'two', 'client', 'member']);
  network.start('member', process.execPath, '-e', MEMBER);
  const objects = webObjects({ address: VIP, port: 80, members: [network.v4('member')] });
  const start = (host: string, peer: string, priority: number) => {
    const [address, other] = [network.v4(host), network.v4(peer)];
    // As the chart writes them.
    const vrrp = {
      interface: 'eth0',
      address,
      peers: [other],
      virtualRouterId: 51,
      anchors: [ANCHOR],
      priority,
    };
    return Container.start(t, { image, network, host, objects, settings: { vrrp } });
  };
  const one = await start('one', 'two', 210);
  const two = await start('two', 'one', 200);
  await network.run('client', 'ip', 'route', 'add', `${VIP}/32`, 'dev', 'eth0');
  const ask = async () => (await network.try('client', 'curl', '-s', '-m', '1', `http://${VIP}/`)).stdout;
  const isHeldBy = async (host: string) => (await network.held(host)).includes(VIP);
  await until('the first one serves', async () => (await isHeldBy('one')) && (await ask()) === 'the member', {
    seconds: 90,
    seen: () => `${one.log}\n${two.log}`,
  });
  t.is(await two.written(), '');
  t.is(await one.stop(), 0, one.log);
  await until('the other one serves', async () => (await isHeldBy('two')) && (await ask()) === 'the member', {
    seconds: 60,
    seen: () => two.log,
  });
  t.is(await two.stop(), 0, two.log);
});

test.serial(
  'A container with BGP announces its address with the rights of the chart, and BIRD outlives the agent',
  async (t) => {
    t.timeout(240_000);
    const network = await TestNetwork.create(t, ['lb', 'router', 'client']);
    network.start('client', process.execPath, '-e', MEMBER);
    const folder = await mkdtemp(join(tmpdir(), 'hg-router-'));
    t.teardown(() => rm(folder, { recursive: true, force: true }));
    await network.run('router', 'sysctl', '-qw', 'net.ipv4.ip_forward=1');
    await network.run('client', 'ip', 'route', 'add', VIPS, 'via', network.v4('router'));
    const router = await TestRouter.create(t, network, folder, { hosts: ['lb'] });
    const vip = '198.51.100.1';
    const objects = webObjects({ address: vip, port: 80, members: [network.v4('client')] });
    const peer = { name: 'tor-a', address: network.v4('router'), asn: ROUTER_ASN, bfd: true };
    const bgp = { asn: HOST_ASN, routerId: network.v4('lb'), peers: [peer] };
    const container = await Container.start(t, {
      image,
      network,
      host: 'lb',
      objects,
      settings: { announce: 'bgp', bgp },
    });
    const ask = async () => (await network.try('client', 'curl', '-s', '-m', '1', `http://${vip}/`)).stdout;
    await until('the router leads clients to it', async () => (await ask()) === 'the member', {
      seconds: 90,
      seen: () => container.log,
    });
    t.deepEqual(await router.hopsOf(vip), [network.v4('lb')]);
    const before = await container.processes();
    for (const pid of [before.agent, before.bird]) {
      const { had, given } = await container.capabilities(pid);
      t.is(had, given);
    }
    const scrape = async () =>
      (await network.try('lb', 'curl', '-s', 'http://127.0.0.1:9180/metrics')).stdout;
    await until('BFD is up', async () => /^bird_bfd_session_up\{.*\} 1$/m.test(await scrape()));
    process.kill(before.agent, 'SIGKILL');
    await until('another agent runs', async () => {
      const { agent } = await container.processes();
      return agent > 0 && agent !== before.agent;
    });
    t.is(await ask(), 'the member');
    await until('it answers a scrape', async () => /^headgate_build_info/m.test(await scrape()));
    const checked = await container.command('headgate', 'check', '--config', '/etc/headgate/headgate.yaml');
    t.regex(checked, /^ok +BIRD: 2\./m);
    t.notRegex(checked, /^BAD/m);
    t.is((await container.processes()).bird, before.bird);
    t.is(await container.written(), '');
    t.is(await container.stop(), 0, container.log);
    await until('its route is gone', async () => (await router.hopsOf(vip)).length === 0);
  },
);

test.serial('A container in a cluster serves a Service with the rights of its account', async (t) => {
  t.timeout(360_000);
  const network = await TestNetwork.create(t, ['lb', 'client', 'member']);
  network.start('member', process.execPath, '-e', MEMBER);
  const kube = await Kube.start();
  t.teardown(() => kube.stop());
  await deploy(kube);
  await kube.must('POST', '/apis/headgate.io/v1alpha1/addresspools', {
    apiVersion: 'headgate.io/v1alpha1',
    kind: 'AddressPool',
    metadata: { name: 'public' },
    spec: { blocks: [`${VIP}/32`] },
  });
  const cluster = await podAccess(t, kube, network);
  await network.run('lb', 'ip', 'address', 'add', `${VIP}/32`, 'dev', 'eth0');
  await network.run('client', 'ip', 'route', 'add', `${VIP}/32`, 'dev', 'eth0');
  const container = await Container.start(t, { image, network, host: 'lb', cluster });

  const [service, slice] = webObjects({ address: VIP, port: 80, members: [network.v4('member')] });
  await kube.must('POST', servicePath('default'), service);
  await kube.must('POST', '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices', slice);
  const ask = async () => (await network.try('client', 'curl', '-s', '-m', '3', `http://${VIP}/`)).stdout;
  await until('the member answers', async () => (await ask()) === 'the member', {
    seconds: 180,
    seen: () => container.log,
  });
  await until('the status has the address', async () => {
    const { status } = await kube.must('GET', servicePath('default', 'web'));
    return status.loadBalancer.ingress?.[0]?.ip === VIP;
  });
  t.is(await container.written(), '');
  t.is(await container.stop(), 0, container.log);
});

/**
 * The account of the manifests, and the API server at the address of the Service `kubernetes` on the host `lb`. Relays over a
 * socket stand in for kube-proxy.
 */
async function podAccess(t: ExecutionContext, kube: Kube, network: TestNetwork): Promise<PodAccess> {
  const [address, port] = ['10.96.0.1', 443];
  const folder = await mkdtemp(join(tmpdir(), 'hg-relay-'));
  const socket = join(folder, 'socket');
  const { hostname, port: apiPort } = new URL(kube.url);
  const relay = net.createServer((one) => {
    const other = net.connect(Number(apiPort), hostname);
    one.on('error', () => other.destroy());
    other.on('error', () => one.destroy());
    one.pipe(other).pipe(one);
  });
  t.teardown(async () => {
    relay.close();
    await rm(folder, { recursive: true, force: true });
  });
  await once(relay.listen(socket), 'listening');
  await network.run('lb', 'ip', 'address', 'add', `${address}/32`, 'dev', 'lo');
  const script = `const net = require('net');
    net.createServer((one) => {
      const other = net.connect('${socket}');
      one.on('error', () => other.destroy());
      other.on('error', () => one.destroy());
      one.pipe(other).pipe(one);
    }).listen(${port}, '${address}', () => console.log('listens'));`;
  const ofHost = network.start('lb', process.execPath, '-e', script);
  if (ofHost.stdout !== null) await once(ofHost.stdout, 'data');
  const token = await kube.serviceAccountToken('headgate-system', 'headgate');
  return { address, port, token, ca: kube.ca };
}
