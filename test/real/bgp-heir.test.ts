// Connections of the kernel path whose host loses its power: whole agents, a real router, and the kernel's rules by which another
// host takes them over.

import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { anchorsOf, BgpWorld } from '../support/bgp/bgp-world.ts';
import { echoMember, OpenConnections } from '../support/bgp/open-connections.ts';
import { echoFlows, OpenFlows } from '../support/bgp/open-flows.ts';
import { type Json, VIP_PORT, webObjects } from '../support/values/service-objects.ts';

const test = requires(ava, {
  haproxy: true,
  root: true,
  programs: ['bird', 'conntrack', 'ip', 'nft', 'nsenter', 'openssl', 'sysctl'],
});

const VIP = '198.51.100.1';
const KERNEL_VIP = '198.51.100.2';
const UDP_VIP = '198.51.100.3';
const KERNEL_VIP6 = '2001:db8:100::2';
const COUNT = 300;
const FORWARDING = ['ipv4.ip_forward', 'ipv6.conf.all.forwarding'];
/** One of a hundred. */
const MOST_LOST = 3;
/** Longer than a packet that was lost would need to be sent again. */
const ANSWERED_MS = 4_000;
/** A client waits ever longer before it sends a packet again. */
const PATIENCE_MS = 60_000;

function kernelObjects(name: string, address: string, member: string, protocol = 'TCP'): readonly Json[] {
  const annotations = { engine: 'kernel' };
  const isV6 = address.includes(':');
  const spec = isV6 ? { ipFamilies: ['IPv6'], ipFamilyPolicy: 'SingleStack' } : {};
  const objects = JSON.stringify(webObjects({ name, address, members: [member], annotations, spec }));
  const text = objects.replaceAll('"protocol":"TCP"', `"protocol":"${protocol}"`);
  return JSON.parse(isV6 ? text.replace('"addressType":"IPv4"', '"addressType":"IPv6"') : text);
}

async function create(t: ExecutionContext<unknown>, names = ['a', 'b', 'c']): Promise<BgpWorld> {
  t.timeout(480_000);
  const world = await BgpWorld.create(t, {
    hosts: names,
    group: true,
    anchors: true,
    hasV6: true,
    flags: ['--stop-dataplane-on-exit'],
    prepare: async (host, network) => {
      for (const name of [...names, 'router'])
        for (const key of FORWARDING) await network.run(name, 'sysctl', '-qw', `net.${key}=1`);
      const [v4, v6] = [network.v4('router'), network.v6('router')];
      await host.write('web.yaml', webObjects({ address: VIP, members: [v4] }));
      await host.write('kernel.yaml', kernelObjects('kernel', KERNEL_VIP, v4));
      await host.write('kernel6.yaml', kernelObjects('kernel6', KERNEL_VIP6, v6));
      await host.write('udp.yaml', kernelObjects('udp', UDP_VIP, v4, 'UDP'));
    },
  });
  const { network } = world;
  await network.run('router', 'sysctl', '-qw', 'net.ipv6.fib_multipath_hash_policy=1');
  await network.run('client', 'ip', '-6', 'route', 'add', '2001:db8:100::/64', 'via', network.v6('router'));
  await echoMember(network, 'router');
  await echoFlows(network, 'router');
  return world;
}

/** These hosts serve, and pass packets on if they are several. */
async function serve(world: BgpWorld, ...names: readonly string[]): Promise<void> {
  for (const vip of [VIP, KERNEL_VIP, UDP_VIP]) await world.leadsTo(vip, ...names);
  const expected = names.map((name) => world.network.v6(name)).sort();
  await until(`the router leads ${KERNEL_VIP6} to ${names}`, async () => {
    const shown = await world.network.run('router', 'ip', '-6', 'route', 'show', `${KERNEL_VIP6}/128`);
    const hops = [...shown.matchAll(/via ([0-9a-f:]+)/g)].map(([, hop = '']) => hop);
    return hops.sort().join() === expected.join();
  });
  if (names.length < 2) return;
  for (const name of names)
    await until(`${name} passes packets on`, async () => (await world.host(name).bgp()).passing.next !== '');
}

interface Opened {
  readonly haproxy: OpenConnections;
  readonly kernel: readonly OpenConnections[];
  readonly udp: OpenFlows;
}

async function connect({ network }: BgpWorld): Promise<Opened> {
  const open = (vip: string) => new OpenConnections(network, vip, VIP_PORT, COUNT);
  const all = {
    haproxy: open(VIP),
    kernel: [open(KERNEL_VIP), open(KERNEL_VIP6)],
    udp: new OpenFlows(network, UDP_VIP, VIP_PORT, COUNT),
  };
  for (const each of [all.haproxy, ...all.kernel]) {
    let seen: unknown;
    const areOpen = async (): Promise<boolean> => {
      const { answered, open, broken } = await each.count();
      seen = `${answered} of ${open}; ${[...new Set(broken)]}`;
      return answered === COUNT;
    };
    await until('all are open', areOpen, { seconds: 40, seen: () => seen });
  }
  await until('all flows are answered', async () => (await all.udp.answered()) === COUNT);
  return all;
}

/** What each kind has lost until now: those that have ended, and those that get no answer for a long time. */
async function lost({ kernel, udp }: Opened): Promise<readonly number[]> {
  await new Promise((resolve) => setTimeout(resolve, ANSWERED_MS));
  const ofTcp = kernel.map(async (each) => {
    let count = await each.count();
    for (const end = Date.now() + PATIENCE_MS; count.answered < count.open && Date.now() < end; ) {
      await new Promise((resolve) => setTimeout(resolve, 500));
      count = await each.count();
    }
    return COUNT - count.answered;
  });
  return [...(await Promise.all(ofTcp)), COUNT - (await udp.answered())];
}

async function areWhole(t: ExecutionContext<unknown>, all: Opened, after: string): Promise<void> {
  const counts = await lost(all);
  const causes = await Promise.all(all.kernel.map(async (each) => [...new Set((await each.count()).broken)]));
  const words = `after ${after} of ${COUNT} each are lost: ${counts.join(', ')} of TCP, TCP by IPv6, UDP; ${causes.flat()}`;
  t.log(words);
  for (const count of counts) t.true(count <= MOST_LOST, words);
}

const adopted = async (world: BgpWorld, name: string): Promise<number> =>
  (await world.host(name).bgp()).passing.adopted;

test.serial(
  'A connection of the kernel path outlives the power loss of its host, its return, and the loss of two hosts one after another',
  async (t) => {
    const world = await create(t);
    const { network } = world;
    await serve(world, 'a', 'b', 'c');
    const [anchor = ''] = anchorsOf(1);
    t.is((await network.run('router', 'ip', 'route', 'show', anchor)).trim().split(' ')[2], network.v4('b'));
    const all = await connect(world);
    const shown = await network.run('b', 'ss', '-Htn', 'state', 'established', 'src', VIP);
    const own = shown.split('\n').length - 1;
    await world.fail('b');
    await serve(world, 'a', 'c');
    await areWhole(t, all, 'the power loss of b');
    const { broken } = await all.haproxy.count();
    t.log(`${broken.length} connections of HAProxy have ended, b had ${own}`);
    t.true(broken.length <= own + MOST_LOST);
    await until('the heir counts them', async () => (await adopted(world, 'c')) > COUNT / 3, { seconds: 15 });
    t.is(await adopted(world, 'a'), 0);
    t.is((await network.run('router', 'ip', 'route', 'show', anchor)).trim().split(' ')[2], network.v4('c'));

    await world.recover('b');
    await serve(world, 'a', 'b', 'c');
    await areWhole(t, all, 'the return of b');

    await world.fail('b');
    await serve(world, 'a', 'c');
    await areWhole(t, all, 'the second power loss of b');
    await world.fail('c');
    await serve(world, 'a');
    await areWhole(t, all, 'the power loss of c, too');
  },
);

test.serial(
  'A connection outlives hosts that are cut off from the back network alone, and from all networks, and return',
  async (t) => {
    const world = await create(t);
    const { network } = world;
    await serve(world, 'a', 'b', 'c');
    const all = await connect(world);
    // The others take b for dead, while the router still leads clients and members to it.
    await network.cutBack('b');
    await areWhole(t, all, 'b has no back network');
    await network.cutBack('b', false);
    await areWhole(t, all, 'b has its back network again');
    await world.cut('b');
    await serve(world, 'a', 'c');
    await areWhole(t, all, 'b is cut off');
    // The entries of b in conntrack are behind by then: the packets are passed to the host that has the connections.
    await world.cut('b', false);
    await serve(world, 'a', 'b', 'c');
    await areWhole(t, all, 'b is back');
  },
);

test.serial('The heir continues to take connections over after a restart of its agent', async (t) => {
  const world = await create(t);
  await serve(world, 'a', 'b', 'c');
  const all = await connect(world);
  const c = world.host('c');
  await c.agent.kill();
  await world.fail('b');
  c.agent = await c.host.start();
  await serve(world, 'a', 'c');
  await areWhole(t, all, 'the power loss of b while the agent of its heir was restarted');
  await c.agent.kill();
  c.agent = await c.host.start();
  await serve(world, 'a', 'c');
  await areWhole(t, all, 'another restart');
});
