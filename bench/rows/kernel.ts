// `kernel-ack`: as `ack-1k`, for ports of the kernel path: from an event of a watch to nft's acknowledgement.
// `throughput-kernel`: wrk, and datagrams, through the kernel path; reference: directly to the member, in turns.
// `throughput-direct`: wrk through the kernel path to a direct member; reference: directly to the member, in turns.
// `kernel-failover`: flows of TCP and UDP whose clients speak all the time, over a loss of power of the active host, without
// and with conntrackd.
// All hosts are network namespaces.

import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { demandPair } from '../pair/demand-pair.ts';
import type { Flows, FlowsOrder } from '../pair/flows-process.ts';
import { ANCHOR, PairNetwork, run } from '../pair/network.ts';
import { HOSTS, TwoAgents } from '../pair/two-agents.ts';
import type { AckAnswer, AckOrder } from '../support/ack-feed.ts';
import { startAgent } from '../support/agent.ts';
import type { DatagramOrder, DatagramRate } from '../support/datagram-load-process.ts';
import { responder, startHaproxy } from '../support/haproxy.ts';
import { isolated } from '../support/isolated.ts';
import { startModule } from '../support/processes.ts';
import { type Bench, type Benchmark, type Row, row } from '../support/row.ts';
import { type Scratch, withScratch } from '../support/scratch.ts';
import { median, percentile } from '../support/statistics.ts';
import { pause, until } from '../support/until.ts';

const ROWS = ['kernel-ack', 'throughput-kernel', 'throughput-direct', 'kernel-failover'] as const;
const VIP = '10.10.0.1';
const BY_HAND = '10.10.0.2';
const PORT = 8080;
const MEMBER_PORT = 9000;
const ROUNDS = 8;
const CONNECTIONS = 300;
const DATAGRAMS = 50;
/** The path of an answer of 64 kB. */
const LARGE = 'large';

export const kernel: Benchmark = {
  rows: ROWS,
  run: async (bench, selected) => {
    demandPair();
    return isolated(import.meta.url, bench, selected);
  },
};

export async function measure(bench: Bench, selected: ReadonlySet<string>): Promise<void> {
  if (selected.has('kernel-ack')) bench.measured(await withScratch((scratch) => ackRow(bench, scratch)));
  if (selected.has('throughput-kernel'))
    bench.measured(await withScratch((scratch) => throughputRow(bench, scratch)));
  if (selected.has('throughput-direct'))
    bench.measured(await withScratch((scratch) => directRow(bench, scratch)));
  if (selected.has('kernel-failover')) bench.measured(await failoverRow(bench));
}

async function ackRow(bench: Bench, scratch: Scratch): Promise<Row> {
  run(['ip', 'link', 'set', 'lo', 'up']);
  run(['sysctl', '-qw', 'net.ipv4.ip_forward=1']);
  const ofKernel = await acknowledgements(bench, scratch, 'kernel');
  const ofHaproxy = await acknowledgements(bench, scratch, 'haproxy');
  const [p50, p99] = [median([...ofKernel]), percentile([...ofKernel], 0.99)];
  return row({
    name: 'kernel-ack',
    value: p50,
    unit: 'ms',
    target: 'p50 ≤ 4 ms',
    met: p50 <= 4,
    reference: { name: 'the same with HAProxy, p50', value: median([...ofHaproxy]) },
    details: { p99, samples: ofKernel.length },
  });
}

async function acknowledgements(
  bench: Bench,
  scratch: Scratch,
  engine: 'kernel' | 'haproxy',
): Promise<readonly number[]> {
  bench.report(`kernel-ack: ${engine}`);
  const directory = scratch.path(engine);
  mkdirSync(directory);
  const child = startModule(scratch, engine, new URL('../support/ack-agent.ts', import.meta.url));
  const [count, size] = [bench.scaled(1_000, 5), bench.scaled(10, 3)];
  const order: AckOrder = { directory, haproxy: bench.haproxy, count, size, port: PORT, engine };
  await child.ask<AckAnswer>(order);
  await child.ask<AckAnswer>({ samples: 20 });
  const { samples } = await child.ask<AckAnswer>({ samples: bench.scaled(400, 20) });
  await child.stop();
  return samples;
}

async function throughputRow(bench: Bench, scratch: Scratch): Promise<Row> {
  const network = await PairNetwork.make(scratch);
  await startMember(bench, scratch, network);
  for (const words of [
    ['sysctl', '-qw', 'net.ipv4.ip_forward=1'],
    ['ip', 'address', 'add', `${ANCHOR}/32`, 'dev', 'eth0'],
    ['ip', 'address', 'add', `${VIP}/32`, 'dev', 'lo'],
  ])
    run([...network.within('a'), ...words]);
  const folder = scratch.path('manifests');
  mkdirSync(folder);
  writeService(folder, network.address('member'));
  startAgent(scratch, folder, { haproxy: bench.haproxy, within: network.within('a') });
  byHand(network);
  const wrk = (address: string, port: number) => requestsThrough(network, address, port);
  await until('The VIP answers', async () => (await wrk(VIP, PORT).catch(() => 0)) > 0, { most: 30_000 });
  const echo = new URL('../support/datagram-member.ts', import.meta.url);
  await startModule(scratch, 'echo', echo, [String(MEMBER_PORT)], network.within('member')).ask({});
  const module = new URL('../support/datagram-load-process.ts', import.meta.url);
  const client = startModule(scratch, 'datagrams', module, [], network.within('client'));
  const datagrams = async (address: string, port: number): Promise<number> => {
    const order: DatagramOrder = { address, port, milliseconds: 1_000 };
    return (await client.ask<DatagramRate>(order)).perSecond;
  };
  await until('The VIP answers datagrams', async () => (await datagrams(VIP, PORT)) > 0, { most: 30_000 });
  const [through, direct, written]: [number[], number[], number[]] = [[], [], []];
  const [udpThrough, udpDirect, udpWritten]: [number[], number[], number[]] = [[], [], []];
  for (let round = 1; round <= bench.scaled(ROUNDS, 2); round++) {
    bench.report(`throughput-kernel: round ${round}`);
    const turns = [
      async () => through.push(await wrk(VIP, PORT)),
      async () => direct.push(await wrk(network.address('member'), MEMBER_PORT)),
      async () => written.push(await wrk(BY_HAND, PORT)),
      async () => udpThrough.push(await datagrams(VIP, PORT)),
      async () => udpDirect.push(await datagrams(network.address('member'), MEMBER_PORT)),
      async () => udpWritten.push(await datagrams(BY_HAND, PORT)),
    ];
    for (const turn of round % 2 === 0 ? turns.reverse() : turns) await turn();
  }
  const ratioOf = (some: readonly number[], reference: readonly number[]): number =>
    median(some.map((rate, at) => rate / (reference[at] ?? Number.NaN)));
  const [ratio, udpRatio] = [ratioOf(through, written), ratioOf(udpThrough, udpWritten)];
  return row({
    name: 'throughput-kernel',
    value: median(through),
    unit: 'requests/s',
    target: '≥ 0.93 × two rules by hand, requests and datagrams',
    met: ratio >= 0.93 && udpRatio >= 0.93,
    reference: { name: 'two rules by hand, DNAT and SNAT', value: median(written) },
    ratio,
    others: [
      { name: 'directly to the member', value: median(direct) },
      { name: 'datagrams/s directly to the member', value: median(udpDirect) },
      { name: 'datagrams/s by the two rules', value: median(udpWritten) },
    ],
    details: {
      rounds: through.length,
      'datagrams/s': median(udpThrough),
      'datagrams, ratio': udpRatio,
    },
  });
}

/** Requests per second of a client. */
async function requestsThrough(
  network: PairNetwork,
  address: string,
  port: number,
  path = '',
): Promise<number> {
  const url = `http://${address}:${port}/${path}`;
  const words = [...network.within('client'), 'wrk', '-t1', '-c64', '-d1s', url];
  const { stdout } = await promisify(execFile)(words[0] ?? '', words.slice(1));
  if (/Socket errors: connect [1-9]|Non-2xx/.test(stdout)) throw new Error(`wrk: ${stdout}`);
  return Number(/Requests\/sec:\s+(\S+)/.exec(stdout)?.[1]);
}

/** The member has the VIP on its loopback, and the port of the Service. */
async function directRow(bench: Bench, scratch: Scratch): Promise<Row> {
  const network = await PairNetwork.make(scratch);
  const address = network.address('member');
  const loopback = ['ip', 'address', 'add', `${VIP}/32`, 'dev', 'lo'];
  const quiet = ['sysctl', '-qw', 'net.ipv4.conf.all.arp_ignore=1', 'net.ipv4.conf.all.arp_announce=2'];
  run([...network.within('member'), ...quiet]);
  for (const host of ['a', 'member'] as const) run([...network.within(host), ...loopback]);
  run([...network.within('a'), 'sysctl', '-qw', 'net.ipv4.ip_forward=1']);
  await startLargeMember(bench, scratch, network);
  const folder = scratch.path('manifests');
  mkdirSync(folder);
  writeService(folder, address, 'kernel', { 'headgate.io/members': 'direct' });
  startAgent(scratch, folder, { haproxy: bench.haproxy, within: network.within('a') });
  run([...network.within('client'), 'ip', 'route', 'replace', `${VIP}/32`, 'via', network.address('a')]);
  const wrk = (to: string, path = LARGE) => requestsThrough(network, to, PORT, path);
  await until('The VIP answers', async () => (await wrk(VIP).catch(() => 0)) > 0, { most: 30_000 });
  const [through, direct]: [number[], number[]] = [[], []];
  const [small, smallDirect]: [number[], number[]] = [[], []];
  for (let round = 1; round <= bench.scaled(ROUNDS, 2); round++) {
    bench.report(`throughput-direct: round ${round}`);
    const turns = [
      async () => through.push(await wrk(VIP)),
      async () => direct.push(await wrk(address)),
      async () => small.push(await wrk(VIP, '')),
      async () => smallDirect.push(await wrk(address, '')),
    ];
    for (const turn of round % 2 === 0 ? turns.reverse() : turns) await turn();
  }
  const ratioOf = (some: readonly number[], reference: readonly number[]): number =>
    median(some.map((rate, at) => rate / (reference[at] ?? Number.NaN)));
  const ratio = ratioOf(through, direct);
  return row({
    name: 'throughput-direct',
    value: median(through),
    unit: 'requests/s',
    target: '≥ 0.9 × directly to the member, answers of 64 kB',
    met: ratio >= 0.9,
    reference: { name: 'directly to the member', value: median(direct) },
    ratio,
    others: [{ name: 'with answers of some bytes, directly', value: median(smallDirect) }],
    details: {
      rounds: through.length,
      'with answers of some bytes, requests/s': median(small),
      'with answers of some bytes, ratio': ratioOf(small, smallDirect),
    },
  });
}

/** Answers with 64 kB, or some bytes, on all of its addresses. */
async function startLargeMember(bench: Bench, scratch: Scratch, network: PairNetwork): Promise<void> {
  const file = scratch.path('large');
  writeFileSync(file, 'x'.repeat(65_536));
  const { body, globals } = responder(`*:${PORT}`);
  const large = `    http-request return status 200 content-type text/plain file ${file} if { path /${LARGE} }\n`;
  await startHaproxy(scratch, 'member', bench.haproxy, body.replace(/(?= {4}http-request return)/, large), {
    globals: `${globals}    tune.bufsize 131072\n`,
    within: network.within('member'),
  });
}

async function failoverRow(bench: Bench): Promise<Row> {
  const ofKernel = await withScratch((scratch) => flowsOverLoss(bench, scratch, 'kernel'));
  const ofHaproxy = await withScratch((scratch) => flowsOverLoss(bench, scratch, 'haproxy'));
  const synced = await withScratch((scratch) =>
    flowsOverLoss(bench, scratch, 'kernel', ['--connection-sync']),
  );
  const share = ({ connections, datagrams, broken }: Flows): number =>
    (100 * broken) / (connections + datagrams);
  const { connections, datagrams, broken, longestMs } = ofKernel;
  return row({
    name: 'kernel-failover',
    value: share(ofKernel),
    unit: '% broken',
    target: '≤ 1 % broken, gap ≤ 1 s; with conntrackd 0 broken',
    met: share(ofKernel) <= 1 && longestMs <= 1_000 && synced.broken === 0,
    reference: { name: 'connections through HAProxy', value: share(ofHaproxy) },
    others: [{ name: 'with conntrackd', value: share(synced) }],
    details: {
      ...{ connections, datagrams, broken, 'longest gap of the others, ms': Math.round(longestMs) },
      'with conntrackd, longest gap, ms': Math.round(synced.longestMs),
    },
  });
}

/** `engine`: of the connections; datagrams always go through the kernel. */
async function flowsOverLoss(
  bench: Bench,
  scratch: Scratch,
  engine: 'kernel' | 'haproxy',
  flags: readonly string[] = [],
): Promise<Flows> {
  bench.report(`kernel-failover: starting the pair, ${[engine, ...flags].join(' ')}`);
  const network = await PairNetwork.make(scratch);
  for (const host of HOSTS) run([...network.within(host), 'sysctl', '-qw', 'net.ipv4.ip_forward=1']);
  const member = new URL('../pair/flows-member.ts', import.meta.url);
  await startModule(scratch, 'member', member, [String(MEMBER_PORT)], network.within('member')).ask({});
  const pair = await TwoAgents.start(bench, scratch, network, 1, flags);
  for (const host of HOSTS) writeService(pair.folder(host).path, network.address('member'), engine);
  const module = new URL('../pair/flows-process.ts', import.meta.url);
  const client = startModule(scratch, 'flows', module, [], network.within('client'));
  const order: FlowsOrder = {
    address: VIP,
    port: PORT,
    connections: bench.scaled(CONNECTIONS, 10),
    datagrams: bench.scaled(DATAGRAMS, 5),
  };
  await client.ask<Flows>(order);
  await pause(2_000);
  bench.report('kernel-failover: the active host loses its power');
  const active = HOSTS.find((host) => network.held(host).includes(VIP));
  if (active === undefined) throw new Error('No host has the VIP');
  network.fail(active);
  await pause(6_000);
  const flows = await client.ask<Flows>({ end: true });
  network.recover(active);
  return flows;
}

/** What forwarding itself costs: rules for one address, one port and one member, on the other host. */
function byHand(network: PairNetwork): void {
  const member = network.address('member');
  const rules = `table ip by_hand {
    chain in { type nat hook prerouting priority dstnat; ip daddr ${BY_HAND} meta l4proto { tcp, udp } th dport ${PORT} dnat to ${member}:${MEMBER_PORT}; }
    chain out { type nat hook postrouting priority srcnat; ct status dnat snat to ${network.address('b')}; }
  }`;
  const within = network.within('b');
  run([...within, 'sysctl', '-qw', 'net.ipv4.ip_forward=1']);
  run([...within, 'nft', rules]);
  run([...network.within('client'), 'ip', 'route', 'add', `${BY_HAND}/32`, 'via', network.address('b')]);
}

async function startMember(bench: Bench, scratch: Scratch, network: PairNetwork): Promise<void> {
  const { body, globals } = responder(`${network.address('member')}:${MEMBER_PORT}`);
  await startHaproxy(scratch, 'member', bench.haproxy, body, { globals, within: network.within('member') });
}

/** A Service of the kernel path with a port of TCP and one of UDP, and one member. */
function writeService(
  folder: string,
  member: string,
  engine: 'kernel' | 'haproxy' = 'kernel',
  others: Readonly<Record<string, string>> = {},
): void {
  const ports = ['TCP', 'UDP'].map((protocol) => ({ name: protocol.toLowerCase(), protocol, port: PORT }));
  const annotations = { 'headgate.io/engine': engine, 'headgate.io/load-balancer-ips': VIP, ...others };
  const metadata = { name: 'kernel', namespace: 'default' };
  const objects = [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { ...metadata, annotations },
      spec: { type: 'LoadBalancer', loadBalancerClass: 'headgate.io/agent', ports },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { ...metadata, name: 'kernel-1', labels: { 'kubernetes.io/service-name': 'kernel' } },
      addressType: 'IPv4',
      endpoints: [{ addresses: [member] }],
      ports: ports.map((each) => ({
        ...each,
        port: 'headgate.io/members' in others ? PORT : MEMBER_PORT,
      })),
    },
  ];
  writeFileSync(join(folder, 'kernel.yaml'), objects.map((each) => JSON.stringify(each)).join('\n---\n'));
}
