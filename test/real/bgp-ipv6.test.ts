// Hosts on which all is IPv6: VIPs, sessions with the router, members, and the back network.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { BgpWorld } from '../support/bgp/bgp-world.ts';
import { echoMember, OpenConnections } from '../support/bgp/open-connections.ts';
import type { TestHost } from '../support/host/agent.ts';
import type { TestNetwork } from '../support/host/namespaces.ts';
import { VIP_PORT, webObjects } from '../support/values/service-objects.ts';
import { order } from '../support/vrrp/agent-pair.ts';

const test = requires(ava, {
  haproxy: true,
  root: true,
  programs: ['bird', 'conntrack', 'ip', 'nft', 'nsenter', 'openssl', 'ss', 'sysctl'],
});

const VIP = '2001:db8:100::1';
const KERNEL_VIP = '2001:db8:100::2';
const ALL = ['a', 'b', 'c'];
const COUNT = 300;
/** Longer than a packet that was lost needs to be sent again. */
const ANSWERED_MS = 3_000;

async function prepare(host: TestHost, network: TestNetwork): Promise<void> {
  const spec = { ipFamilies: ['IPv6'], ipFamilyPolicy: 'SingleStack' };
  const members = [network.v6('router')];
  await host.write('web.yaml', webObjects({ address: VIP, members, spec }));
  const annotations = { engine: 'kernel' };
  await host.write(
    'kernel.yaml',
    webObjects({ name: 'kernel', address: KERNEL_VIP, members, spec, annotations }),
  );
}

async function whole(world: BgpWorld, ...names: readonly string[]): Promise<void> {
  for (const vip of [VIP, KERNEL_VIP]) await world.leadsTo(vip, ...names);
  for (const name of names)
    await until(`${name} passes packets on`, async () => (await world.host(name).bgp()).passing.next !== '');
}

test.serial(
  'With IPv6 alone no open connection ends at a planned change, and a dead host is left out',
  async (t) => {
    t.timeout(180_000);
    const world = await BgpWorld.create(t, {
      hosts: ALL,
      family: 'v6',
      group: true,
      prepare: async (host, network) => {
        for (const name of ALL) {
          await network.run(name, 'sysctl', '-qw', 'net.ipv6.conf.all.forwarding=1');
          for (const device of ['eth0', 'back'])
            await network.try(name, 'ip', '-4', 'address', 'flush', 'dev', device);
        }
        await prepare(host, network);
      },
    });
    const { network } = world;
    await echoMember(network, 'router');
    await whole(world, ...ALL);
    const { stdout, status } = await world.host('a').host.command('status');
    t.is(status, 0, stdout);
    t.regex(stdout, /router tor-a, fd09::\d+, AS 65000: established since .*, 2 routes, BFD up/);
    t.regex(stdout, / b, 127\.[0-9.]+: connected, .*, BFD up/);

    const all = [VIP, KERNEL_VIP].map((vip) => new OpenConnections(network, vip, VIP_PORT, COUNT));
    for (const each of all) await until('all are open', async () => (await each.count()).answered === COUNT);
    const areWhole = async (after: string): Promise<void> => {
      await new Promise((resolve) => setTimeout(resolve, ANSWERED_MS));
      for (const each of all) t.like(await each.count(), { answered: COUNT, broken: [] }, after);
    };
    const b = world.host('b');
    const locked = await order(b.host, 'maintenance', 'on');
    t.true(locked.ok, locked.message);
    await whole(world, 'a', 'c');
    await areWhole('maintenance');
    t.true((await order(b.host, 'maintenance', 'off')).ok);
    await whole(world, ...ALL);
    await areWhole('its end');
    await world.cut('c');
    await world.leadsTo(VIP, 'a', 'b');
  },
);
