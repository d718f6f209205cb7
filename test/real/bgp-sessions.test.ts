// Kinds of session with a router, each with traffic of clients: link-local addresses, TTL security, a router that is further away.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { BgpWorld, VIPS_V6 } from '../support/bgp/bgp-world.ts';
import { HOST_ASN, ROUTER_ASN } from '../support/bgp/test-router.ts';
import type { TestHost } from '../support/host/agent.ts';
import type { TestNetwork } from '../support/host/namespaces.ts';
import { VIP_PORT, webObjects } from '../support/values/service-objects.ts';

const test = requires(ava, {
  haproxy: true,
  root: true,
  programs: ['bird', 'ip', 'nsenter', 'sysctl'],
});

const VIP = '198.51.100.1';
const VIP_V6 = '2001:db8:100::1';

const web = (host: TestHost, network: TestNetwork) =>
  host.write('web.yaml', webObjects({ address: VIP, members: [network.v4('client')] }));

const answers = (network: TestNetwork, vip: string, seen: () => unknown = () => '') =>
  until(`${vip} answers`, async () => (await network.whoServes(vip, VIP_PORT)) === 'member', { seen });

async function isSaid(host: TestHost, pattern: RegExp): Promise<void> {
  let seen = '';
  await until(
    `it is said: ${pattern}`,
    async () => {
      const { problems, bgp } = await host.status();
      seen = JSON.stringify([problems, bgp?.sessions]);
      return problems.some(({ message }) => pattern.test(message));
    },
    { seen: () => seen },
  );
}

test.serial('A session over link-local addresses leads clients of both families here', async (t) => {
  const world = await BgpWorld.create(t, { hosts: ['a'], prepare: web });
  const { network, router } = world;
  const a = world.host('a');
  const linkLocalOf = async (host: string): Promise<string> => {
    const shown = await network.run(
      host,
      'ip',
      '-o',
      '-6',
      'address',
      'show',
      'dev',
      'eth0',
      'scope',
      'link',
    );
    return /inet6 (fe80::[0-9a-f:]+)/.exec(shown)?.[1] ?? '';
  };
  await network.run('router', 'sysctl', '-qw', 'net.ipv6.conf.all.forwarding=1');
  await network.run('client', 'ip', '-6', 'route', 'add', VIPS_V6, 'via', network.v6('router'));
  await router.add(`protocol bgp over_link {
  local as ${ROUTER_ASN}; neighbor range fe80::/10 external; interface "eth0"; dynamic name "link"; bfd on;
  ipv4 { import all; export none; extended next hop on; };
  ipv6 { import all; export none; };
}
protocol kernel kernel6 { merge paths yes; ipv6 { export all; import none; }; }`);
  await a.configure(
    {},
    {
      address: await linkLocalOf('router'),
      interface: 'eth0',
      bfd: { interval: '300ms' },
      families: ['ipv4', 'ipv6'],
    },
  );
  await a.host.write(
    'web6.yaml',
    webObjects({
      name: 'web6',
      address: VIP_V6,
      members: [network.v6('client')],
      spec: { ipFamilies: ['IPv6'], ipFamilyPolicy: 'SingleStack' },
    }),
  );
  const seen = () => a.agent.text.slice(-2_000);
  await answers(network, VIP, seen);
  await answers(network, VIP_V6, seen);
  t.regex(await network.run('router', 'ip', 'route', 'show', `${VIP}/32`), /via inet6 fe80::/);
  t.regex(await network.run('router', 'ip', '-6', 'route', 'show', `${VIP_V6}/128`), /via fe80::/);
  await until('BFD is up', async () => (await a.bgp()).sessions[0]?.bfd === 'Up');
  await network.cut('a');
  await until('the router has left it out', async () => (await router.hopsOf(VIP)).length === 0);
  await network.join('a');
  await answers(network, VIP, seen);
  await answers(network, VIP_V6, seen);
});

test.serial('TTL security admits a router that has it, and one without it is named', async (t) => {
  const peer = { ttlSecurity: true };
  const world = await BgpWorld.create(t, { hosts: ['a'], prepare: web, peer, neighbour: 'ttl security on;' });
  const { network, router } = world;
  const a = world.host('a');
  await world.leadsTo(VIP, 'a');
  await answers(network, VIP);
  await router.configure('');
  await isSaid(a.host, /it has no TTL security for this host/);
  await router.configure('ttl security on;');
  await world.leadsTo(VIP, 'a');
  t.is(await network.whoServes(VIP, VIP_PORT), 'member');
});

test.serial(
  'A router that is two hops away needs "multihop", which is said, and has the VIPs with it',
  async (t) => {
    const far = '192.0.2.1';
    const world = await BgpWorld.create(t, {
      hosts: ['a'],
      others: ['middle'],
      prepare: async (host, network) => {
        await network.run('router', 'ip', 'address', 'add', `${far}/32`, 'dev', 'lo');
        for (const name of ['all', 'eth0'])
          await network.run('middle', 'sysctl', '-qw', `net.ipv4.conf.${name}.send_redirects=0`);
        await network.run('middle', 'sysctl', '-qw', 'net.ipv4.ip_forward=1');
        await network.run('middle', 'ip', 'route', 'add', far, 'via', network.v4('router'));
        await network.run('a', 'ip', 'route', 'add', far, 'via', network.v4('middle'));
        await web(host, network);
      },
    });
    const { network, router } = world;
    const a = world.host('a');
    await world.leadsTo(VIP, 'a');
    // The world's own session goes.
    await router.configure('disabled;');
    await router.add(`protocol direct { ipv4; }
protocol bgp far_a { local ${far} as ${ROUTER_ASN}; neighbor ${network.v4('a')} as ${HOST_ASN}; multihop 2;
  hold time 9; connect retry time 1; error wait time 1, 2; ipv4 { import all; export none; }; }`);
    await a.configure({}, { address: far, bfd: false });
    await isSaid(a.host, /set "multihop" if it is further away/);
    await a.configure({}, { multihop: 2 });
    await until('it is established', async () => (await a.bgp()).sessions[0]?.state === 'Established', {
      seen: () => a.agent.text.slice(-2_000),
    });
    await until('the router leads to it', async () => (await router.hopsOf(VIP)).join() === network.v4('a'));
    await answers(network, VIP);
    await network.run('middle', 'sysctl', '-qw', 'net.ipv4.ip_forward=0');
    await until('the session ends', async () => (await a.bgp()).sessions[0]?.state !== 'Established');
    await network.run('middle', 'sysctl', '-qw', 'net.ipv4.ip_forward=1');
    await answers(network, VIP);
    t.is((await a.bgp()).sessions[0]?.address, far);
  },
);
