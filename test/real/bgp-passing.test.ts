// Connections that are open while the set of hosts changes: whole agents, the real HAProxy and the kernel path, a real router, and the
// kernel's rules that pass packets on.

import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { BgpWorld } from '../support/bgp/bgp-world.ts';
import { closedConnections, echoMember, OpenConnections } from '../support/bgp/open-connections.ts';
import type { TestHost } from '../support/host/agent.ts';
import type { TestNetwork } from '../support/host/namespaces.ts';
import { VIP_PORT, webObjects } from '../support/values/service-objects.ts';
import { order } from '../support/vrrp/agent-pair.ts';

const test = requires(ava, {
  haproxy: true,
  root: true,
  programs: ['bird', 'conntrack', 'ip', 'nft', 'nsenter', 'openssl', 'ss', 'sysctl'],
});

const VIP = '198.51.100.1';
const KERNEL_VIP = '198.51.100.2';
const COUNT = 300;
const ANSWERED_MS = 3_000;

async function prepare(host: TestHost, network: TestNetwork): Promise<void> {
  const members = [network.v4('router')];
  await host.write('web.yaml', webObjects({ address: VIP, members }));
  const annotations = { engine: 'kernel' };
  await host.write('kernel.yaml', webObjects({ name: 'kernel', address: KERNEL_VIP, members, annotations }));
}

async function create(t: ExecutionContext<unknown>, names = ['a', 'b', 'c']): Promise<BgpWorld> {
  const world = await BgpWorld.create(t, {
    hosts: names,
    group: true,
    flags: ['--stop-dataplane-on-exit'],
    prepare: async (host, network) => {
      for (const name of names) await network.run(name, 'sysctl', '-qw', 'net.ipv4.ip_forward=1');
      await prepare(host, network);
    },
  });
  await echoMember(world.network, 'router');
  return world;
}

async function pass(world: BgpWorld, ...names: readonly string[]): Promise<void> {
  await world.leadsTo(VIP, ...names);
  await world.leadsTo(KERNEL_VIP, ...names);
  for (const name of names)
    await until(`${name} passes packets on`, async () => (await world.host(name).bgp()).passing.next !== '');
}

type Opened = Readonly<Record<'haproxy' | 'kernel', OpenConnections>>;

/** Connections to HAProxy and to the kernel path, all of them answered. */
async function connect({ network }: BgpWorld): Promise<Opened> {
  const both = {
    haproxy: new OpenConnections(network, VIP, VIP_PORT, COUNT),
    kernel: new OpenConnections(network, KERNEL_VIP, VIP_PORT, COUNT),
  };
  for (const each of Object.values(both))
    await until('all are open', async () => (await each.count()).answered === COUNT);
  return both;
}

/** Each still gets answers, longer than a packet that was lost would need to be sent again. */
async function areWhole(t: ExecutionContext<unknown>, all: Partial<Opened>, after: string): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ANSWERED_MS));
  for (const [name, each] of Object.entries(all)) {
    const { answered, broken } = await each.count();
    t.is(answered, COUNT, `after ${after}, ${name}: ${[...new Set(broken)]}`);
  }
}

const tables = (network: TestNetwork, host: string) => network.run(host, 'nft', 'list', 'tables');

test.serial('No open connection ends with maintenance or a restart of an agent', async (t) => {
  const world = await create(t);
  await pass(world, 'a', 'b', 'c');
  t.regex(await tables(world.network, 'b'), /table ip6 headgate_[0-9a-f]+_passing/);
  const all = await connect(world);
  const [b, c] = [world.host('b'), world.host('c')];
  await order(b.host, 'maintenance', 'on');
  await areWhole(t, all, 'maintenance on');
  await c.agent.kill();
  t.true((await tables(world.network, 'c')).includes('_passing'), 'the tables stay without the agent');
  await areWhole(t, all, 'the end of an agent');
  c.agent = await c.host.start();
  await pass(world, 'a', 'c');
  await areWhole(t, all, 'its restart');
  await order(b.host, 'maintenance', 'off');
  await pass(world, 'a', 'b', 'c');
  await areWhole(t, all, 'maintenance off');
  const passed = await Promise.all(world.hosts.map(async ({ bgp }) => (await bgp()).passing.passed));
  t.true(
    passed.some((packets) => packets > COUNT),
    passed.join(),
  );
});

test.serial(
  'A host that joins ends no open connection, one that dies only its own, and one that is stopped leaves no tables',
  async (t) => {
    const world = await create(t);
    const { network } = world;
    await pass(world, 'a', 'b', 'c');
    const c = world.host('c');
    await c.agent.stop();
    t.false((await tables(network, 'c')).includes('_passing'));
    await pass(world, 'a', 'b');
    const all = await connect(world);
    c.agent = await c.host.start();
    await pass(world, 'a', 'b', 'c');
    await areWhole(t, all, 'a host has joined');

    const own =
      (await network.run('b', 'ss', '-Htn', 'state', 'established', 'src', VIP)).split('\n').length - 1;
    await world.cut('b');
    await world.leadsTo(VIP, 'a', 'c');
    let lost = 0;
    await new Promise((resolve) => setTimeout(resolve, ANSWERED_MS));
    await until('the connections of the dead host are reset', async () => {
      const { answered, broken } = await all.haproxy.count();
      lost = broken.length;
      return answered + broken.length === COUNT;
    });
    t.log(`${own} connections of the dead host, ${lost} lost`);
    t.is(lost, own);
  },
);

test.serial(
  'A parameter that would drop packets of the back network is a problem, as is an address that is missing',
  async (t) => {
    const world = await create(t, ['a', 'b']);
    const { network } = world;
    await pass(world, 'a', 'b');
    const a = world.host('a');
    const says = (pattern: RegExp) =>
      until(
        `it is said: ${pattern}`,
        async () => pattern.test((await a.host.status()).problems.map(({ message }) => message).join()),
        { seconds: 30 },
      );
    t.is((await a.host.status()).problems.filter(({ reason }) => reason === 'PassingFaulty').length, 0);
    await network.run('a', 'sysctl', '-qw', 'net.ipv4.conf.back.rp_filter=1');
    await network.run('a', 'ip', 'link', 'set', 'back', 'mtu', '1400');
    await says(/rp_filter: is 1 on back, .*set it to 2/);
    await says(/MTU: that of back is 1400, less than 1500 of eth0/);
    const { stdout } = await a.host.command('check');
    t.regex(stdout, /BAD +rp_filter: is 1 on back/);
    await network.run('a', 'ip', 'address', 'del', `${network.back4('a')}/24`, 'dev', 'back');
    await says(/no interface of this host has the back address|is not on the interface back/);
  },
);

test.serial(
  'Connections of HAProxy outlive a flush of the table of conntrack, and clients whose packets have a DSCP of the ring',
  async (t) => {
    const world = await create(t);
    const { network } = world;
    await pass(world, 'a', 'b', 'c');
    const { haproxy } = await connect(world);
    const dscp = 'table ip marks { chain out { type filter hook output priority 0; ip dscp set 7; }; }';
    await network.run('client', 'nft', dscp);
    await areWhole(t, { haproxy }, 'the first marked packets');
    for (const name of ['a', 'b', 'c']) await network.run(name, 'conntrack', '-F');
    await areWhole(t, { haproxy }, 'a flush');
    await order(world.host('b').host, 'maintenance', 'on');
    await areWhole(t, { haproxy }, 'maintenance');
  },
);

test.serial(
  'A connection is passed on by a host on which its client has had another one from the same port',
  async (t) => {
    const world = await create(t);
    const { network } = world;
    await pass(world, 'a', 'b', 'c');
    // Below the range of ports that the kernel chooses.
    const from = 20_000;
    for (const vip of [VIP, KERNEL_VIP])
      await closedConnections(network, vip, VIP_PORT, { count: COUNT, from });
    await order(world.host('b').host, 'maintenance', 'on');
    await world.leadsTo(VIP, 'a', 'c');
    const all = {
      haproxy: new OpenConnections(network, VIP, VIP_PORT, COUNT, from),
      kernel: new OpenConnections(network, KERNEL_VIP, VIP_PORT, COUNT, from),
    };
    for (const each of Object.values(all))
      await until('all are open', async () => (await each.count()).answered === COUNT);
    await order(world.host('b').host, 'maintenance', 'off');
    await pass(world, 'a', 'b', 'c');
    await areWhole(t, all, 'the return of the host');
  },
);
