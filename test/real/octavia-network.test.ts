// The network of an amphora in real namespaces: ip judges addresses, routes and rules, and clients ask through them.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import ava from 'ava';
import { sleep } from '../../agent/base/clock.ts';
import { eventually } from '../support/basics/eventually.ts';
import { requires } from '../support/basics/requirements.ts';
import { nftExecutable } from '../support/host/nft.ts';
import { AmphoraHost } from '../support/octavia/amphora-host.ts';
import { fixed, VIP_MAC, vipPlug } from '../support/octavia/plugs.ts';

const test = requires(ava, { root: true, programs: ['ip', 'nft'] });

const MEMBER_MAC = '02:00:00:00:01:02';
const isAmphora = (who: string): boolean => who === 'amphora';
const DUAL = vipPlug({
  additionalVips: [fixed({ address: 'fd09::100', subnet: 'fd09::/64', gateway: 'fd09::1' })],
});
const MEMBERS = {
  mac: MEMBER_MAC,
  mtu: 1450,
  fixed: [
    fixed({ address: '10.20.0.5', subnet: '10.20.0.0/24' }),
    fixed({ address: 'fd20::5', subnet: 'fd20::/64' }),
  ],
  vip: undefined,
  isSriov: false,
};

test('A SINGLE amphora gets its VIPs with their routes and rules, and clients reach them', async (t) => {
  const host = await AmphoraHost.create(t);
  const { network } = host;
  await writeFile(join(host.folder, 'rescan'), '');
  const own = host.networkOf();
  await t.throwsAsync(own.plugVip(DUAL), {
    code: 'OCTAVIA_NO_INTERFACE',
    message: 'No suitable network interface found',
  });
  t.is(await readFile(join(host.folder, 'rescan'), 'utf8'), '1');
  await host.plug('ens7', VIP_MAC);
  t.is(await own.plugVip(DUAL), 'eth1');

  t.deepEqual(
    await host.addresses(),
    ['eth1 10.9.0.100/32', 'eth1 10.9.0.21/16', 'eth1 fd09::100/128', 'lo 127.0.0.1/8', 'lo ::1/128'].filter(
      (each) => !each.startsWith('lo '),
    ),
  );
  t.deepEqual(await host.routes(), [
    '10.50.0.0/24 via 10.9.0.2 dev eth1 onlink',
    '10.50.0.0/24 via 10.9.0.2 dev eth1 table 1 onlink',
    '10.9.0.0/16 dev eth1 table 1 scope link src 10.9.0.100',
    'default via 10.9.0.1 dev eth1 onlink',
    'default via 10.9.0.1 dev eth1 table 1 onlink',
    'default via fd09::1 dev eth1 onlink',
    'default via fd09::1 dev eth1 table 1 onlink',
    'fd09::/64 dev eth1',
    'fd09::/64 dev eth1 table 1 src fd09::100',
  ]);
  t.deepEqual(await host.rules(), [
    'from 10.9.0.100 lookup 1 proto static',
    'from fd09::100 lookup 1 proto static',
  ]);
  const [link] = await host.show<{ mtu: number; address: string }>('amphora', 'link', 'show', 'dev', 'eth1');
  t.like(link, { mtu: 1400, address: VIP_MAC });
  t.is(await own.interfaceOf('fd09:0::21'), undefined);
  t.is(await own.interfaceOf('10.9.0.21'), 'eth1');
  for (const key of [
    'ipv4/ip_forward',
    'ipv6/conf/all/forwarding',
    'ipv4/ip_nonlocal_bind',
    'ipv6/ip_nonlocal_bind',
  ])
    t.is((await network.run('amphora', 'cat', `/proc/sys/net/${key}`)).trim(), '1', key);

  network.serve('amphora');
  await eventually(() => network.whoServes('10.9.0.100'), isAmphora);
  t.is(await network.whoServes('fd09::100'), 'amphora');
  // A client behind the router of a host route.
  await network.run('client', 'ip', 'address', 'add', '10.9.0.2/16', 'dev', 'eth0');
  await network.run('client', 'ip', 'address', 'add', '10.50.0.7/32', 'dev', 'lo');
  await network.run('client', 'ip', 'route', 'add', '10.9.0.100/32', 'dev', 'eth0', 'src', '10.50.0.7');
  t.is(await network.whoServes('10.9.0.100'), 'amphora');

  // The second request changes nothing.
  await t.throwsAsync(own.plugVip(DUAL), { code: 'OCTAVIA_EXISTS', message: 'Interface already exists' });
  // Without the file it is a first one, wherever the interface is.
  await writeFile(join(host.folder, 'amphora-interfaces.json'), 'no JSON');
  const [addresses, routes] = [await host.addresses(), await host.routes()];
  t.is(await host.networkOf().plugVip(DUAL), 'eth1');
  t.deepEqual([await host.addresses(), await host.routes()], [addresses, routes]);
  await t.throwsAsync(host.networkOf().plugVip(DUAL), { code: 'OCTAVIA_EXISTS' });
  const traffic = (await own.traffic()).get('eth1');
  t.true((traffic?.rx ?? 0) > 0 && (traffic?.tx ?? 0) > 0);
});

test('An amphora may have addresses of IPv6 alone', async (t) => {
  const host = await AmphoraHost.create(t);
  const { network } = host;
  await host.plug('ens7', VIP_MAC);
  const vip = fixed({
    ...{ address: 'fd09::100', subnet: 'fd09::/64', gateway: 'fd09::1' },
    hostRoutes: [{ destination: 'fd50::/64', nextHop: 'fd09::2' }],
  });
  await host.networkOf().plugVip(vipPlug({ vip, vrrpAddress: 'fd09::21' }));
  t.deepEqual(await host.addresses(), ['eth1 fd09::100/128', 'eth1 fd09::21/64']);
  t.deepEqual(await host.routes(), [
    'default via fd09::1 dev eth1 onlink',
    'default via fd09::1 dev eth1 table 1 onlink',
    'fd09::/64 dev eth1',
    'fd09::/64 dev eth1 table 1 src fd09::100',
    'fd50::/64 via fd09::2 dev eth1 onlink',
    'fd50::/64 via fd09::2 dev eth1 table 1 onlink',
  ]);
  t.deepEqual(await host.rules(), ['from fd09::100 lookup 1 proto static']);
  network.serve('amphora');
  await eventually(() => network.whoServes('fd09::100'), isAmphora);
});

test('A network of members gets the next interface, and a second plug sets exactly what it says', async (t) => {
  const host = await AmphoraHost.create(t);
  const own = host.networkOf();
  await host.plug('ens7', VIP_MAC);
  await own.plugVip(DUAL);
  await host.plug('ens8', MEMBER_MAC);
  t.deepEqual(await own.plugNetwork(MEMBERS), { name: 'eth2', isKnown: false });
  const rules = await host.rules();
  t.deepEqual(
    (await host.addresses()).filter((each) => each.startsWith('eth2')),
    ['eth2 10.20.0.5/24', 'eth2 fd20::5/64'],
  );
  const changed = {
    ...MEMBERS,
    fixed: [
      fixed({ address: '10.20.0.6', subnet: '10.20.0.0/24' }),
      fixed({
        address: '10.21.0.6',
        subnet: '10.21.0.0/25',
        hostRoutes: [
          { destination: '10.60.0.0/16', nextHop: '10.21.0.1' },
          // Its next hop is the amphora itself: the kernel refuses it, and the others are set.
          { destination: '10.61.0.0/16', nextHop: '10.21.0.6' },
        ],
      }),
    ],
  };
  t.deepEqual(await own.plugNetwork(changed), { name: 'eth2', isKnown: true });
  t.deepEqual(
    (await host.addresses()).filter((each) => each.startsWith('eth2')),
    ['eth2 10.20.0.6/24', 'eth2 10.21.0.6/25'],
  );
  t.deepEqual(
    (await host.routes()).filter((each) => each.includes('eth2')),
    ['10.60.0.0/16 via 10.21.0.1 dev eth2 onlink'],
  );
  t.deepEqual(await host.rules(), rules);

  // Subnets of members on the interface of the VIPs.
  await own.plugNetwork({
    mac: VIP_MAC,
    mtu: 1400,
    fixed: [fixed({ address: '10.30.0.5', subnet: '10.30.0.0/24' })],
    vip: DUAL,
    isSriov: false,
  });
  t.deepEqual(
    (await host.addresses()).filter((each) => each.startsWith('eth1')),
    ['eth1 10.30.0.5/24', 'eth1 10.9.0.100/32', 'eth1 10.9.0.21/16', 'eth1 fd09::100/128'],
  );
  await own.plugNetwork({ mac: VIP_MAC, mtu: 1400, fixed: [], vip: DUAL, isSriov: false });
  t.deepEqual(
    (await host.addresses()).filter((each) => each.startsWith('eth1')),
    ['eth1 10.9.0.100/32', 'eth1 10.9.0.21/16', 'eth1 fd09::100/128'],
  );
});

test('An agent that starts makes all again, after a reboot by MAC and otherwise what another program has changed', async (t) => {
  const host = await AmphoraHost.create(t);
  const { network } = host;
  await host.plug('ens7', VIP_MAC);
  await host.plug('ens8', MEMBER_MAC);
  const first = host.networkOf();
  await first.plugVip(DUAL);
  await first.plugNetwork(MEMBERS);
  const before = [await host.addresses(), await host.routes(), await host.rules()];
  const rulesBefore = await network.run('amphora', 'nft', 'list', 'table', 'inet', 'headgate_amphora');

  await network.run('amphora', 'ip', 'address', 'del', '10.9.0.100/32', 'dev', 'eth1');
  await network.run('amphora', 'ip', 'route', 'del', 'default', 'table', '1');
  await network.run('amphora', 'ip', 'rule', 'del', 'from', '10.9.0.100', 'table', '1');
  await network.run('amphora', 'nft', 'flush', 'ruleset');
  await host.networkOf().restore();
  t.deepEqual([await host.addresses(), await host.routes(), await host.rules()], before);
  t.is(await network.run('amphora', 'nft', 'list', 'table', 'inet', 'headgate_amphora'), rulesBefore);

  // The kernel gives the interfaces other names, and Nova has not plugged the second yet.
  await network.run('amphora', 'ip', 'link', 'set', 'eth1', 'netns', network.netns('node'), 'name', 'ens9');
  await network.run('amphora', 'ip', 'link', 'set', 'eth2', 'netns', network.netns('node'), 'name', 'ens3');
  await network.run('node', 'ip', 'netns', 'delete', network.netns('amphora'));
  // An agent that was killed in the middle of making the namespace.
  await writeFile(`/run/netns/${network.netns('amphora')}`, '');
  await network.run('node', 'ip', 'link', 'set', 'ens3', 'address', '02:00:00:00:09:09');
  const second = host.networkOf();
  await second.restore();
  t.is(await second.interfaceOf('10.9.0.100'), 'eth1');
  await network.run('node', 'ip', 'link', 'set', 'ens3', 'address', MEMBER_MAC);
  t.deepEqual(await second.plugNetwork(MEMBERS), { name: 'eth2', isKnown: false });
  t.deepEqual([await host.addresses(), await host.routes(), await host.rules()], before);
  network.serve('amphora');
  await eventually(() => network.whoServes('10.9.0.100'), isAmphora);
});

test('A pair leaves VIPs to keepalived, and a second plug keeps the VIP that keepalived has set', async (t) => {
  const host = await AmphoraHost.create(t);
  const own = host.networkOf('amphora', 'ACTIVE_STANDBY');
  await host.plug('ens7', VIP_MAC);
  await own.plugVip(DUAL);
  t.deepEqual(await host.addresses(), ['eth1 10.9.0.21/16']);
  t.deepEqual(await host.rules(), []);
  const { network } = host;
  await network.run('amphora', 'ip', 'address', 'add', '10.9.0.100/32', 'dev', 'eth1');
  await network.run(
    'amphora',
    ...(['ip', 'rule', 'add', 'from', '10.9.0.100', 'table', '1', 'protocol', '18'] as const),
  );
  await own.plugNetwork({ mac: VIP_MAC, mtu: 1400, fixed: [], vip: DUAL, isSriov: false });
  await own.announce();
  t.deepEqual(await host.addresses(), ['eth1 10.9.0.100/32', 'eth1 10.9.0.21/16']);
  t.deepEqual(await host.rules(), ['from 10.9.0.100 lookup 1 proto keepalived']);
});

test('Neighbours learn at once that a VIP is here', async (t) => {
  const host = await AmphoraHost.create(t);
  const { network } = host;
  await host.plug('ens7', VIP_MAC);
  const own = host.networkOf();
  await own.plugVip(DUAL);
  for (const address of ['10.9.0.100', 'fd09::100'])
    await network.run(
      'client',
      ...(['ip', 'neighbour', 'replace', address, 'lladdr', '02:00:00:00:0f:0f'] as const),
      ...(['dev', 'eth0', 'nud', 'stale'] as const),
    );
  await own.announce();
  await eventually(
    () => network.run('client', 'ip', 'neighbour', 'show', 'dev', 'eth0'),
    (known) =>
      ['10.9.0.100', 'fd09::100'].every((each) =>
        known.split('\n').some((line) => line.startsWith(`${each} `) && line.includes(VIP_MAC)),
      ),
  );
  t.pass();
});

test('An SR-IOV interface drops all that the controller has not allowed', async (t) => {
  const host = await AmphoraHost.create(t);
  const { network } = host;
  await host.plug('ens7', VIP_MAC);
  const own = host.networkOf();
  await own.plugVip({ ...DUAL, isSriov: true });
  network.serve('amphora', 8080);
  network.serve('amphora', 8081);
  t.is(await network.whoServes('10.9.0.100', 8080), '');
  const rule = { protocol: 'TCP', cidr: undefined, port: 8080 } as const;
  await own.setRules('10.9.0.100', [rule]);
  t.is(await network.whoServes('10.9.0.100', 8080), 'amphora');
  t.is(await network.whoServes('fd09::100', 8080), 'amphora');
  t.is(await network.whoServes('10.9.0.100', 8081), '');
  await own.setRules('10.9.0.100', [{ ...rule, cidr: '10.77.0.0/16' }]);
  t.is(await network.whoServes('10.9.0.100', 8080), '');
  await t.throwsAsync(own.setRules('10.9.0.77', [rule]), { code: 'OCTAVIA_NOT_FOUND' });
  // The amphora itself reaches others.
  network.serve('client', 8082);
  const words = [
    'timeout',
    '3',
    'bash',
    '--norc',
    '-c',
    'exec 3<>/dev/tcp/10.9.0.11/8082 && cat <&3',
  ] as const;
  await eventually(
    async () => (await network.try('amphora', ...words)).stdout,
    (said) => said === 'client',
  );
});

test('An agent that is killed at any moment of a plug leaves nothing that the next request does not mend', async (t) => {
  const host = await AmphoraHost.create(t);
  const { network } = host;
  const options = {
    ...{ netns: network.netns('amphora'), hostNetns: network.netns('node'), nft: nftExecutable },
    file: join(host.folder, 'amphora-interfaces.json'),
  };
  const path = new URL('../../agent/octavia/network/amphora-network.ts', import.meta.url).href;
  const script = `
    const { Network } = await import(${JSON.stringify(path)});
    const log = { debug() {}, info() {}, warn() {}, error() {}, setLevel() {} };
    const network = new Network({ ...${JSON.stringify(options)}, topology: () => 'SINGLE', log });
    console.log('begins');
    await network.plugVip(${JSON.stringify(DUAL)});
    console.log('ends');`;
  let whole: readonly (readonly string[])[] = [];
  const cut: string[] = [];
  for (const [round, share] of [2, 0, 0.1, 0.25, 0.4, 0.6, 0.8].entries()) {
    await host.plug(`ens${round}`, VIP_MAC);
    const agent = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const exit = once(agent, 'exit');
    await once(agent.stdout, 'data');
    const took = await killedAfter(agent, share);
    await exit;
    const next = host.networkOf();
    await next.restore();
    const answer = await next.plugVip(DUAL).catch((error: unknown) => (error as { code: string }).code);
    cut.push(`${took} ${answer}`);
    const states = [await host.addresses(), await host.routes(), await host.rules()];
    if (round === 0) whole = states;
    t.deepEqual(states, whole, cut.join('; '));
    t.regex(await network.run('amphora', 'nft', 'list', 'tables'), /headgate_amphora/);
    await network.run('node', 'ip', 'netns', 'delete', network.netns('amphora'));
    await rm(options.file, { force: true });
    await eventually(
      () => network.try('bridge', 'ip', 'link', 'show', `of-ens${round}`),
      ({ exitCode }) => exitCode !== 0,
    );
  }
  t.log(cut.join('; '));
});

/** How long a plug takes whole; measured by the first one. */
let wholeMs = 0;

/** Kills it after a share of the time that the first one took, which ends by itself; its milliseconds. */
async function killedAfter(agent: ChildProcess, share: number): Promise<number> {
  const began = performance.now();
  if (share > 1) await once(agent, 'exit');
  else await sleep(share * wholeMs);
  agent.kill('SIGKILL');
  const took = Math.round(performance.now() - began);
  if (share > 1) wholeMs = took;
  return took;
}
