// `egress-new-pod`: from the return of the write of an EndpointSlice with a new pod to the first datagram of the pod that leaves
// from the VIP, beside 1,000 pods; reference: the same element sent to `nft -i` by hand.
// `egress-failover`: flows of TCP and UDP that a pod opens, over a loss of power of the active host, without and with conntrackd.
// All hosts are network namespaces.

import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { NftSession } from '../../agent/nftables/table/session.ts';
import { monotonic } from '../api/monotonic.ts';
import { demandPair } from '../pair/demand-pair.ts';
import type { Flows, FlowsOrder } from '../pair/flows-process.ts';
import { ANCHOR, type HostName, PairNetwork, run } from '../pair/network.ts';
import { HOSTS, TwoAgents } from '../pair/two-agents.ts';
import { startAgent } from '../support/agent.ts';
import type { PodOrder, Seen, SeenOrder } from '../support/egress-process.ts';
import { isolated } from '../support/isolated.ts';
import { startModule } from '../support/processes.ts';
import { type Bench, type Benchmark, type Row, row } from '../support/row.ts';
import { type Scratch, withScratch } from '../support/scratch.ts';
import { median, percentile } from '../support/statistics.ts';
import { pause, until } from '../support/until.ts';

const ROWS = ['egress-new-pod', 'egress-failover'] as const;
const VIP = '10.10.0.1';
const BY_HAND = '10.10.0.2';
const PORT = 9000;
const PODS = 1_000;
const SAMPLES = 60;
const CONNECTIONS = 250;
const DATAGRAMS = 50;

export const egress: Benchmark = {
  rows: ROWS,
  run: async (bench, selected) => {
    demandPair();
    return isolated(import.meta.url, bench, selected);
  },
};

export async function measure(bench: Bench, selected: ReadonlySet<string>): Promise<void> {
  if (selected.has('egress-new-pod'))
    bench.measured(await withScratch((scratch) => newPodRow(bench, scratch)));
  if (selected.has('egress-failover')) bench.measured(await failoverRow(bench));
}

async function newPodRow(bench: Bench, scratch: Scratch): Promise<Row> {
  const network = await PairNetwork.make(scratch);
  const outside = network.address('member');
  prepareHost(network);
  const session = byHand(scratch, network);
  const folder = scratch.path('manifests');
  mkdirSync(folder);
  write(folder, 'web', [service(), slice('web', addresses(bench.scaled(PODS, 10), 20))]);
  startAgent(scratch, folder, { haproxy: bench.haproxy, within: network.within('a') });
  const module = new URL('../support/egress-process.ts', import.meta.url);
  const server = startModule(scratch, 'server', module, ['server', String(PORT)], network.within('member'));
  const pods = startModule(scratch, 'pods', module, ['pods'], network.within('client'));
  const seen = (order: SeenOrder): Promise<Seen> => server.ask<Seen>(order);
  const samples = bench.scaled(SAMPLES, 3);
  const took = { agent: [] as number[], hand: [] as number[] };
  for (let n = 0; n < samples + 3; n++)
    for (const by of ['agent', 'hand'] as const) {
      const pod = `10.11.${by === 'agent' ? 1 : 2}.${n + 1}`;
      const vip = by === 'agent' ? VIP : BY_HAND;
      run([...network.within('client'), 'ip', 'address', 'add', `${pod}/32`, 'dev', 'eth0']);
      await pods.ask<object>({ pod, to: outside, port: PORT } satisfies PodOrder);
      await pause(20);
      const began = monotonic();
      if (by === 'agent') write(folder, 'new', [slice('new', [pod])]);
      else await session.ask(`add element ip by_hand pods { ${pod} : ${BY_HAND} }`);
      let at = 0;
      const left = async () => {
        ({ at } = await seen({ pod, vip }));
        return at > 0;
      };
      await until('The pod leaves from the VIP', left, { every: 20, most: 30_000 });
      await pods.ask<object>({ pod: '', to: outside, port: PORT } satisfies PodOrder);
      // The first ones warm up and do not count.
      if (n >= 3) took[by].push(at - began);
      await pause(100);
    }
  const [p50, handP50] = [median([...took.agent]), median([...took.hand])];
  return row({
    name: 'egress-new-pod',
    value: p50,
    unit: 'ms',
    target: 'p50 ≤ 10 ms or 2 × by hand',
    met: p50 <= Math.max(10, 2 * handP50),
    reference: { name: 'by hand, p50', value: handP50 },
    others: [{ name: 'by hand, p99', value: percentile([...took.hand], 0.99) }],
    details: { p99: percentile([...took.agent], 0.99), samples, pods: bench.scaled(PODS, 10) },
  });
}

/** The way of pods to the server leads through host a, which has both VIPs. */
function prepareHost(network: PairNetwork): void {
  const within = network.within('a');
  const [pods, outside] = [network.address('client'), network.address('member')];
  for (const words of [
    ['sysctl', '-qw', 'net.ipv4.ip_forward=1'],
    ...['all', 'eth0'].map((where) => ['sysctl', '-qw', `net.ipv4.conf.${where}.send_redirects=0`]),
    ['ip', 'address', 'add', `${VIP}/32`, 'dev', 'eth0'],
    ['ip', 'address', 'add', `${BY_HAND}/32`, 'dev', 'eth0'],
    ['ip', 'route', 'add', '10.11.0.0/16', 'via', pods],
  ])
    run([...within, ...words]);
  run([...network.within('client'), 'ip', 'route', 'add', `${outside}/32`, 'via', network.address('a')]);
}

function byHand(scratch: Scratch, network: PairNetwork): NftSession {
  const rules = `table ip by_hand {
    map pods { type ipv4_addr : ipv4_addr; }
    chain out { type nat hook postrouting priority srcnat - 16; policy accept; snat ip to ip saddr map @pods; }
  }`;
  run([...network.within('a'), 'nft', rules]);
  // The session runs in the namespace of host a.
  const program = scratch.path('nft-of-a');
  writeFileSync(program, `#!/bin/sh\nexec ${network.within('a').join(' ')} nft "$@"\n`, { mode: 0o700 });
  const session = new NftSession({ program, netns: '' });
  scratch.defer(() => session.close());
  return session;
}

async function failoverRow(bench: Bench): Promise<Row> {
  const plain = await withScratch((scratch) => flowsOverLoss(bench, scratch, []));
  const synced = await withScratch((scratch) => flowsOverLoss(bench, scratch, ['--connection-sync']));
  const { connections, datagrams, broken, longestMs } = synced;
  return row({
    name: 'egress-failover',
    value: broken,
    unit: 'flows broken',
    target: '0 broken with conntrackd, gap ≤ 1 s',
    met: broken === 0 && longestMs <= 1_000,
    reference: { name: 'without conntrackd', value: plain.broken },
    details: {
      ...{ connections, datagrams, 'longest gap, ms': Math.round(longestMs) },
      'without conntrackd, longest gap, ms': Math.round(plain.longestMs),
    },
  });
}

async function flowsOverLoss(bench: Bench, scratch: Scratch, flags: readonly string[]): Promise<Flows> {
  bench.report(`egress-failover: starting the pair ${flags.join(' ')}`);
  const network = await PairNetwork.make(scratch);
  for (const host of HOSTS)
    for (const words of [
      ['net.ipv4.ip_forward=1'],
      ...['all', 'eth0'].map((where) => [`net.ipv4.conf.${where}.send_redirects=0`]),
    ])
      run([...network.within(host), 'sysctl', '-qw', ...words]);
  const [pod, outside] = [network.address('client'), network.address('member')];
  const member = new URL('../pair/flows-member.ts', import.meta.url);
  await startModule(scratch, 'member', member, [String(PORT)], network.within('member')).ask({});
  const pair = await TwoAgents.start(bench, scratch, network, 1, flags);
  for (const host of HOSTS) write(pair.folder(host).path, 'web', [service(8081), slice('web', [pod])]);
  const isMapped = (host: HostName): boolean =>
    run([...network.within(host), 'nft', 'list', 'ruleset']).includes(`${pod} : ${VIP}`);
  await until('Both hosts have the map', async () => HOSTS.every(isMapped), { every: 100, most: 60_000 });
  run([...network.within('client'), 'ip', 'route', 'add', `${outside}/32`, 'via', ANCHOR]);
  run([...network.within('member'), 'ip', 'route', 'add', '10.10.0.0/16', 'via', ANCHOR]);
  const module = new URL('../pair/flows-process.ts', import.meta.url);
  const flows = startModule(scratch, 'flows', module, [], network.within('client'));
  const [connections, datagrams] = [bench.scaled(CONNECTIONS, 10), bench.scaled(DATAGRAMS, 5)];
  await flows.ask<Flows>({ address: outside, port: PORT, connections, datagrams } satisfies FlowsOrder);
  await pause(2_000);
  bench.report('egress-failover: the active host loses its power');
  const active = HOSTS.find((host) => network.held(host).includes(VIP));
  if (active === undefined) throw new Error('No host has the VIP');
  network.fail(active);
  await pause(6_000);
  const result = await flows.ask<Flows>({ end: true });
  network.recover(active);
  return result;
}

function addresses(count: number, from: number): readonly string[] {
  return Array.from({ length: count }, (_, n) => `10.11.${from + Math.floor(n / 250)}.${(n % 250) + 1}`);
}

function write(folder: string, name: string, objects: readonly object[]): void {
  const draft = join(folder, `.${name}.draft`);
  writeFileSync(draft, objects.map((each) => JSON.stringify(each)).join('\n---\n'));
  renameSync(draft, join(folder, `${name}.yaml`));
}

function service(port = 8080): object {
  const annotations = { 'headgate.io/egress': 'true', 'headgate.io/load-balancer-ips': VIP };
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web', namespace: 'default', annotations },
    spec: {
      type: 'LoadBalancer',
      loadBalancerClass: 'headgate.io/agent',
      ports: [{ port, targetPort: PORT }],
    },
  };
}

function slice(name: string, pods: readonly string[]): object {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name, namespace: 'default', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    endpoints: pods.map((address) => ({ addresses: [address] })),
    ports: [{ port: PORT, protocol: 'TCP' }],
  };
}
