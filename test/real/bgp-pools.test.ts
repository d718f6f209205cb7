// What pools say of the way in which their VIPs are announced, with real agents, the real BIRD and a real router.

import ava from 'ava';
import { ADDRESS_API_VERSION as apiVersion } from '../../agent/kubernetes/object-names.ts';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { BgpWorld } from '../support/bgp/bgp-world.ts';
import type { TestHost } from '../support/host/agent.ts';
import type { TestNetwork } from '../support/host/namespaces.ts';
import { VIP_PORT, webObjects } from '../support/values/service-objects.ts';
import { order } from '../support/vrrp/agent-pair.ts';

const test = requires(ava, {
  haproxy: true,
  root: true,
  programs: ['bird', 'ip', 'nsenter', 'ss', 'sysctl'],
});

const [VIP, OTHER] = ['198.51.100.1', '198.51.100.129'];

const web = (host: TestHost, network: TestNetwork, address: string, name: string) =>
  host.write(`${name}.yaml`, webObjects({ name, address, members: [network.v4('client')] }));

const pool = (host: TestHost, name: string, block: string, bgp: object) =>
  host.write(
    `pool-${name}.yaml`,
    JSON.stringify({ apiVersion, kind: 'AddressPool', metadata: { name }, spec: { blocks: [block], bgp } }),
  );

test.serial(
  'A pool has its own communities, aggregate and hosts, and a change of it needs no restart',
  async (t) => {
    const world = await BgpWorld.create(t, {
      prepare: async (host, network) => {
        await pool(host, 'front', '198.51.100.0/25', {
          communities: ['65001:77'],
          largeCommunities: ['65001:1:2'],
          aggregateLength: 25,
        });
        await pool(host, 'back', '198.51.100.128/25', { peers: ['another'] });
        await web(host, network, VIP, 'web');
        await web(host, network, OTHER, 'other');
      },
    });
    const { network, router } = world;
    const [a, b] = [world.host('a'), world.host('b')];
    await world.leadsTo(VIP, 'a', 'b');
    const routes = await router.routes();
    t.true(routes.includes('(65001,77)'), routes);
    t.true(routes.includes('(65001, 1, 2)'), routes);
    t.false(routes.includes('generic'), 'marks of peers stay here');
    t.true(routes.includes('198.51.100.0/25'), 'the aggregate is announced');
    t.false(routes.includes(OTHER), 'it is for another peer');
    t.is(await network.whoServes(VIP, VIP_PORT), 'member');

    for (const { host } of world.hosts)
      await pool(host, 'front', '198.51.100.0/25', { communities: ['65001:78'] });
    await until('the change is announced', async () => {
      const now = await router.routes();
      return now.includes('(65001,78)') && !now.includes('(65001,77)') && !now.includes('198.51.100.0/25');
    });
    for (const { host, name } of world.hosts)
      await pool(host, 'back', '198.51.100.128/25', {
        announceFrom: { hosts: name === 'a' ? ['lb-x'] : [] },
      });
    await world.leadsTo(OTHER, 'b');
    await until('it says why', async () =>
      /"announceFrom" of the pool back does not select this host/.test(
        (await a.host.why('default/other')).announced.join(),
      ),
    );
    for (const { host } of [a, b]) await host.remove('web.yaml');
    await world.leadsTo(VIP);
  },
);

test.serial('A VIP without members is withdrawn if the setting asks for it', async (t) => {
  const world = await BgpWorld.create(t, {
    hosts: ['a'],
    prepare: (host) => host.write('web.yaml', webObjects({ name: 'web', address: VIP, members: [] })),
  });
  const a = world.host('a');
  await world.leadsTo(VIP, 'a');
  await a.configure({ withoutMembers: 'withdraw' });
  await until('it is withdrawn', async () => (await world.router.hopsOf(VIP)).length === 0);
  await until('it says why', async () =>
    /none of its members can be reached/.test((await a.host.why()).announced.join()),
  );
  await web(a.host, world.network, VIP, 'web');
  await world.leadsTo(VIP, 'a');
  t.is(await world.network.whoServes(VIP, VIP_PORT), 'member');
});

requires(ava, {
  haproxy: true,
  root: true,
  programs: ['bird', 'ip', 'keepalived', 'nft', 'nsenter', 'ss', 'sysctl'],
}).serial('With announce "both" the VIPs of a routed pool go by BGP, and all others by VRRP', async (t) => {
  const local = '10.9.0.200';
  const vrrp = {
    interface: 'eth0',
    address: '',
    peers: ['10.9.0.250'],
    virtualRouterId: 51,
    anchors: ['10.9.0.254'],
  };
  const world = await BgpWorld.create(t, {
    hosts: ['a'],
    flags: ['--announce', 'both'],
    vrrp: (network) => ({ ...vrrp, address: network.v4('a') }),
    prepare: async (host, network) => {
      const spec = { blocks: ['198.51.100.0/24'], announce: 'bgp' };
      await host.write(
        'pool.yaml',
        JSON.stringify({ apiVersion, kind: 'AddressPool', metadata: { name: 'routed' }, spec }),
      );
      await web(host, network, VIP, 'web');
      await web(host, network, local, 'local');
    },
  });
  const { network } = world;
  const a = world.host('a');
  await world.leadsTo(VIP, 'a');
  t.is(await network.whoServes(VIP, VIP_PORT), 'member');
  await until('keepalived has the local VIP alone', async () => {
    const shown = await network.run('a', 'ip', '-4', 'address', 'show', 'dev', 'eth0');
    return shown.includes(`${local}/32`) && !shown.includes(VIP);
  });
  t.false((await world.router.routes()).includes(local), 'it is not announced by BGP');
  const { bgp, vrrp: shown } = await a.host.status();
  t.like(bgp, { vips: { first: 1, last: 0, withheld: 0 } });
  t.is(shown?.vips, 1);
  t.is((await order(a.host, 'maintenance', 'on')).status, 0);
  await until('both are lowered', async () => {
    const now = await a.host.status();
    return now.bgp?.vips.last === 1 && now.vrrp?.lowered.join() === 'maintenance';
  });
  // A pool that is announced by VRRP from now on.
  await a.host.write(
    'pool.yaml',
    JSON.stringify({
      apiVersion,
      kind: 'AddressPool',
      metadata: { name: 'routed' },
      spec: { blocks: ['198.51.100.0/24'], announce: 'vrrp' },
    }),
  );
  await world.leadsTo(VIP);
  await until('keepalived has both', async () =>
    (await network.run('a', 'ip', '-4', 'address', 'show', 'dev', 'eth0')).includes(`${VIP}/32`),
  );
});

requires(ava, {
  haproxy: true,
  root: true,
  programs: ['bird', 'ip', 'keepalived', 'nft', 'nsenter', 'ss', 'sysctl'],
}).serial(
  'Hosts that know one another announce by both: a local VIP is at one of them, a routed one at all',
  async (t) => {
    const local = '10.9.0.200';
    const world = await BgpWorld.create(t, {
      hosts: ['a', 'b'],
      group: true,
      flags: ['--announce', 'both'],
      vrrp: (network, name) => ({
        ...{ interface: 'eth0', virtualRouterId: 51, anchors: ['10.9.0.254'] },
        address: network.v4(name),
        peers: [network.v4(name === 'a' ? 'b' : 'a')],
      }),
      prepare: async (host, network) => {
        const spec = { blocks: ['198.51.100.0/24'], announce: 'bgp' };
        await host.write(
          'pool.yaml',
          JSON.stringify({ apiVersion, kind: 'AddressPool', metadata: { name: 'routed' }, spec }),
        );
        await web(host, network, VIP, 'web');
        await web(host, network, local, 'local');
      },
    });
    const { network } = world;
    const holders = async () => {
      const shown = await Promise.all(
        world.hosts.map(async ({ name }) => [
          name,
          await network.run(name, 'ip', '-4', 'address', 'show', 'dev', 'eth0'),
        ]),
      );
      return shown.flatMap(([name = '', text = '']) => (text.includes(`${local}/32`) ? [name] : []));
    };
    await world.leadsTo(VIP, 'a', 'b');
    await until('one host has the local VIP', async () => (await holders()).length === 1);
    const [holder = ''] = await holders();
    const other = holder === 'a' ? 'b' : 'a';
    t.false((await world.router.routes()).includes(local));
    await until(
      'they know one another',
      async () => (await world.host('a').host.status()).hosts?.fault === '',
    );
    const seen = await world.host(other).host.why('default/local');
    t.false(seen.announced.join().includes('is not announced'), seen.announced.join());
    t.is((await order(world.host(holder).host, 'maintenance', 'on')).status, 0);
    await until('the local VIP is at the other host', async () => (await holders()).join() === other);
    await world.leadsTo(VIP, other);
    t.is(await network.whoServes(VIP, VIP_PORT), 'member');
  },
);
