// What the kernel is asked for in a planned failover, without agents: two hosts, and VIPs of both families.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { HandoverKernel } from '../../agent/pair/handover/kernel.ts';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { TestNetwork } from '../support/host/namespaces.ts';
import { said, startMovingVipClient } from '../support/vrrp/moving-vip.ts';

const test = requires(ava, { root: true, programs: ['ip', 'nft', 'ss', 'nsenter', 'sysctl'] });

const VIPS = ['10.9.1.1', 'fd09::1:1'];
const PORT = 8080;
const TABLE = 'headgate_handover_51';

test('Connections of both families continue through a host that no longer has the VIPs', async (t) => {
  const { network, a, b } = await hosts(t);
  await give(network, 'a');
  const clients = await Promise.all(VIPS.map((vip) => startMovingVipClient(t, network, PORT, [vip])));
  t.true((await a.connections(VIPS)).length >= 2);
  await a.lend(VIPS, 60);
  await b.divert({ peer: await a.link(), vips: VIPS, forwarded: [], own: [], seconds: 60 });
  await take(network, 'a');
  await give(network, 'b');
  // ARP requests for the VIPs now get the Ethernet address of the host that has them.
  await network.run('client', 'ip', 'neigh', 'flush', 'dev', 'eth0');
  for (const { more } of clients) await more(20, 10);
  await until('each VIP has a neighbour', async () => (await neighbours(network)).every((one) => one !== ''));
  const [ether, ...others] = await neighbours(network);
  t.is(ether, (await b.link()).ether);
  t.deepEqual(others, [ether]);
  for (const { result } of clients) t.like(await result(), { failures: [], end: '' });
});

test('A connection that a host already has stays there', async (t) => {
  const { network, a, b } = await hosts(t);
  await give(network, 'b');
  const start = (kind: 'both' | 'kept') =>
    Promise.all(VIPS.map((vip) => startMovingVipClient(t, network, PORT, [vip], kind)));
  // None is made between the list of connections and the rules with it: the VIPs are elsewhere in a failover.
  const before = await start('kept');
  await b.divert({
    peer: await a.link(),
    vips: VIPS,
    forwarded: [],
    own: await b.connections(VIPS),
    seconds: 60,
  });
  const after = await start('both');
  for (const { more } of before) await more(0, 10);
  for (const { more } of after) await more(20, 10);
  for (const { result } of [...before, ...after]) t.like(await result(), { failures: [], end: '' });
});

test('A connection that neither host has is reset, and does not loop between them', async (t) => {
  const { network, a, b } = await hosts(t);
  await give(network, 'b');
  const clients = await Promise.all(VIPS.map((vip) => startMovingVipClient(t, network, PORT, [vip])));
  await a.lend(VIPS, 60);
  await a.divert({ peer: await b.link(), vips: VIPS, forwarded: [], own: [], seconds: 60 });
  await b.divert({ peer: await a.link(), vips: VIPS, forwarded: [], own: [], seconds: 60 });
  for (const { ended } of clients) t.regex(await ended(), /ECONNRESET/);
});

test('Lent addresses time out, and permanent ones stay', async (t) => {
  const { network, a } = await hosts(t);
  await network.run('a', 'ip', 'address', 'add', '10.9.1.2/32', 'dev', 'lo');
  const held = async (): Promise<readonly string[]> => {
    const text = await network.run('a', 'ip', '-o', 'address', 'show', 'dev', 'lo');
    return [...VIPS, '10.9.1.2', '10.9.1.3'].filter((vip) => text.includes(` ${vip}/`));
  };
  await a.lend(['10.9.1.2', '10.9.1.3'], 60);
  await a.takeBack(['10.9.1.2', '10.9.1.3']);
  t.deepEqual(await held(), ['10.9.1.2']);
  await a.takeBack(VIPS);
  await a.lend(VIPS, 60);
  t.deepEqual(await held(), [...VIPS, '10.9.1.2']);
  await a.lend(VIPS, 1);
  await until('they have ended', async () => (await held()).length === 1);
  t.deepEqual(await held(), ['10.9.1.2']);
});

test('The VIPs in the rules time out, and missing rules are no fault', async (t) => {
  const { network, a, b } = await hosts(t);
  await b.endDiversion();
  const divert = async (seconds: number) =>
    b.divert({ peer: await a.link(), vips: VIPS, forwarded: [], own: [], seconds });
  const isIn = async (vip: string, family: string): Promise<boolean> =>
    (await network.run('b', 'nft', 'list', 'set', 'netdev', TABLE, `vips_${family}`)).includes(vip);
  const areIn = () => Promise.all([isIn('10.9.1.1', 'v4'), isIn('fd09::1:1', 'v6')]);
  await divert(60);
  t.deepEqual(await areIn(), [true, true]);
  await divert(1);
  await until('they have ended', async () => !(await areIn()).includes(true));
  t.deepEqual(await areIn(), [false, false]);
  await b.endDiversion();
  t.not((await network.try('b', 'nft', 'list', 'table', 'netdev', TABLE)).exitCode, 0);
});

test('A host reports why it cannot hand over', async (t) => {
  const { network, a, folder } = await hosts(t);
  t.is(await a.whyNotLend(), '');
  t.is(await a.whyNotDivert(), '');
  t.not((await network.try('a', 'nft', 'list', 'table', 'netdev', TABLE)).exitCode, 0);
  await network.run('a', 'sysctl', '-qw', 'net.ipv4.conf.all.arp_ignore=0');
  t.regex(await a.whyNotLend(), /set net\/ipv4\/conf\/eth0\/arp_ignore to 1, it is 0/);
  const place = () => ({ interface: 'eth9', address: '10.9.0.9' });
  const other = new HandoverKernel({
    nft: 'nft',
    netns: network.netns('a'),
    place,
    table: TABLE,
    scratch: folder,
  });
  t.regex(await other.whyNotDivert(), /^Program "nft" failed: /);
});

interface Hosts {
  readonly network: TestNetwork;
  readonly a: HandoverKernel;
  readonly b: HandoverKernel;
  readonly folder: string;
}

/** Two that answer on a port of whatever address they have, and a client. */
async function hosts(t: ExecutionContext): Promise<Hosts> {
  t.timeout(120_000);
  const network = await TestNetwork.create(t, ['a', 'b', 'client']);
  const folder = await mkdtemp(join(tmpdir(), 'hg-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const script = `require('net').createServer((socket) => socket.on('error', () => 0).pipe(socket)).listen(${PORT}, '::', () => console.log())`;
  await Promise.all(['a', 'b'].map((host) => said(network.start(host, process.execPath, '-e', script))));
  const [a, b] = ['a', 'b'].map((host) => {
    const place = () => ({ interface: 'eth0', address: network.v4(host) });
    const scratch = folder;
    return new HandoverKernel({ nft: 'nft', netns: network.netns(host), place, table: TABLE, scratch });
  }) as [HandoverKernel, HandoverKernel];
  return { network, a, b, folder };
}

async function give(network: TestNetwork, host: string): Promise<void> {
  for (const vip of VIPS) await network.run(host, 'ip', 'address', 'add', ...single(vip));
}

async function take(network: TestNetwork, host: string): Promise<void> {
  for (const vip of VIPS) await network.run(host, 'ip', 'address', 'del', ...single(vip));
}

function single(vip: string): readonly string[] {
  return vip.includes(':') ? [`${vip}/128`, 'dev', 'eth0', 'nodad'] : [`${vip}/32`, 'dev', 'eth0'];
}

/** The Ethernet addresses that the client knows for the VIPs. */
async function neighbours(network: TestNetwork): Promise<readonly string[]> {
  const text = await network.run('client', 'ip', 'neigh', 'show', 'dev', 'eth0');
  return VIPS.map((vip) => new RegExp(`^${vip} .*lladdr (\\S+)`, 'm').exec(text)?.[1] ?? '');
}
