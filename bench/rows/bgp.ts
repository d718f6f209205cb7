// Three hosts that announce by BGP with BFD of 3 × 100 ms, and a router that spreads connections over them; all are network
// namespaces. `bgp-new-vip`, `bgp-new-vip-kernel`: the time from the start of the write of a Service with a new VIP, with 1,000
// VIPs of one host present, until a client behind the router has an answer. `bgp-crash`: for how long new connections fail when a
// host is cut off, and how many of the open ones end. `bgp-maintenance`: connections that fail, and open ones that end, when a
// host gets maintenance and serves again. `bgp-last-host`: connections that fail when the last host gets it. `bgp-5k`: the time
// until the router leads none of 5,000 VIPs to a host that is cut off. Reference: BIRD and HAProxy by hand, where a VIP is a line
// and `configure soft`, all of a host's lines go for maintenance, and nothing passes packets of open connections on.

import { VIP_PORT } from '../../test/support/values/service-objects.ts';
import { monotonic } from '../api/monotonic.ts';
import { startAgentHosts } from '../bgp/agent-hosts.ts';
import { demandBgp } from '../bgp/demand-bgp.ts';
import { startPlainHosts } from '../bgp/plain-hosts.ts';
import { type Clients, type Side, startClients, vipAt } from '../bgp/side.ts';
import type { Visits } from '../bgp/visitors-process.ts';
import type { Kept } from '../pair/kept-connections.ts';
import { type Bench, type Benchmark, type Row, row } from '../support/row.ts';
import { type Scratch, withScratch } from '../support/scratch.ts';
import { median, percentile, sum } from '../support/statistics.ts';
import { pause } from '../support/until.ts';

const NEW_VIP = ['bgp-new-vip', 'bgp-new-vip-kernel'];
const CHANGES = ['bgp-crash', 'bgp-maintenance', 'bgp-last-host'];
const HOSTS = ['a', 'b', 'c'];
const VIP = vipAt(0);
const KERNEL_VIP = '198.18.250.1';
const SAMPLES = 15;
const RUNS = 3;
/** Open connections of HAProxy, and as many of the kernel path. */
const KEPT = 300;

export const bgp: Benchmark = {
  rows: [...NEW_VIP, ...CHANGES, 'bgp-5k'],
  run: async (bench, selected) => {
    demandBgp();
    if (NEW_VIP.some((name) => selected.has(name)))
      await withScratch((scratch) => newVips(bench, scratch, selected));
    if (CHANGES.some((name) => selected.has(name))) await changes(bench, selected);
    if (selected.has('bgp-5k')) await withScratch((scratch) => allVips(bench, scratch));
  },
};

async function newVips(bench: Bench, scratch: Scratch, selected: ReadonlySet<string>): Promise<void> {
  const vips = bench.scaled(1_000, 10);
  const agents = await startAgentHosts(bench, scratch, { hosts: ['a'], vips, kernelVips: [KERNEL_VIP] });
  const plain = await startPlainHosts(bench, scratch, ['a'], vips);
  const sides = [
    { side: agents, clients: startClients(scratch, 'agents', agents.network) },
    { side: plain, clients: startClients(scratch, 'plain', plain.network) },
  ] as const;
  for (const { side } of sides) await side.settled(vipAt(vips - 1), 'a');
  await pause(3_000);
  const took: Readonly<Record<'haproxy' | 'kernel' | 'plain', number[]>> = {
    haproxy: [],
    kernel: [],
    plain: [],
  };
  for (let n = 0; n < bench.scaled(SAMPLES); n++) {
    bench.report(`bgp-new-vip: ${n + 1} of ${bench.scaled(SAMPLES)}`);
    const next = (kind: number): string => `198.18.${240 + kind}.${1 + n}`;
    took.haproxy.push(await firstAnswer(sides[0].clients, next(0), agents.add));
    took.kernel.push(await firstAnswer(sides[0].clients, next(1), agents.addToKernel));
    took.plain.push(await firstAnswer(sides[1].clients, next(2), plain.add));
  }
  const reference = {
    name: 'a line and `configure soft` by hand, HAProxy listens already',
    value: median(took.plain),
  };
  const newVip = (name: string, values: readonly number[], most: number): Row =>
    row({
      name,
      value: median(values),
      unit: 'ms',
      target: `p50 ≤ ${most} ms`,
      met: median(values) <= most,
      reference,
      details: {
        p90: percentile(values, 0.9),
        longest: Math.max(...values),
        samples: values.length,
        VIPs: vips,
      },
    });
  if (selected.has('bgp-new-vip')) bench.measured(newVip('bgp-new-vip', took.haproxy, 45));
  if (selected.has('bgp-new-vip-kernel')) bench.measured(newVip('bgp-new-vip-kernel', took.kernel, 15));
}

async function firstAnswer({ visitors }: Clients, vip: string, add: Side['add']): Promise<number> {
  const answered = visitors<{ readonly at: number }>({ kind: 'first', address: vip, port: VIP_PORT });
  await pause(50);
  const since = monotonic();
  await add(vip);
  const { at } = await answered;
  // HAProxy reloads meanwhile.
  await pause(1_500);
  return at - since;
}

interface Change {
  readonly visits: Visits;
  /** Open connections of HAProxy, and of the kernel path. */
  readonly kept: readonly Kept[];
}

async function changes(bench: Bench, selected: ReadonlySet<string>): Promise<void> {
  const ofAgents = await withScratch(async (scratch) => {
    const side = await startAgentHosts(bench, scratch, { hosts: HOSTS, vips: 1, kernelVips: [KERNEL_VIP] });
    const measured = await measureSide(bench, selected, side, {
      clients: startClients(scratch, 'agents', side.network),
      kept: [VIP, KERNEL_VIP],
      ownOf: () => side.connectionsOf('b', VIP),
    });
    return measured;
  });
  const byHand = await withScratch(async (scratch) => {
    const side = await startPlainHosts(bench, scratch, HOSTS, 1);
    const clients = startClients(scratch, 'plain', side.network);
    return measureSide(bench, selected, side, { clients, kept: [VIP], ownOf: async () => 0 });
  });
  if (selected.has('bgp-crash')) bench.measured(crashRow(ofAgents, byHand));
  if (selected.has('bgp-maintenance')) bench.measured(maintenanceRow(ofAgents, byHand));
  if (selected.has('bgp-last-host')) bench.measured(lastHostRow(ofAgents, byHand));
}

interface Measured {
  readonly crashes: Change[];
  /** Connections of HAProxy that the host had before each crash. */
  readonly own: number[];
  readonly maintenance: Change[];
  readonly last: Visits[];
}

interface Means {
  readonly clients: Clients;
  /** The VIPs of open connections. */
  readonly kept: readonly string[];
  readonly ownOf: () => Promise<number>;
}

async function measureSide(
  bench: Bench,
  selected: ReadonlySet<string>,
  side: Side,
  { clients, kept, ownOf }: Means,
): Promise<Measured> {
  const measured: Measured = { crashes: [], own: [], maintenance: [], last: [] };
  const settled = async (...hosts: readonly string[]): Promise<void> => {
    for (const vip of kept) await side.settled(vip, ...hosts);
  };
  const runs = bench.scaled(RUNS);
  for (let run = 1; run <= runs; run++) {
    await settled(...HOSTS);
    if (selected.has('bgp-maintenance')) {
      bench.report(`bgp-maintenance: ${run} of ${runs}`);
      const planned = async (): Promise<void> => {
        await side.stand('b', true);
        await settled('a', 'c');
        await pause(1_500);
        await side.stand('b', false);
        await settled(...HOSTS);
      };
      measured.maintenance.push(await during(clients, kept, planned));
    }
    if (selected.has('bgp-crash')) {
      bench.report(`bgp-crash: ${run} of ${runs}`);
      const crash = async (): Promise<void> => {
        measured.own.push(await ownOf());
        await side.cut('b', true);
        await pause(4_000);
      };
      measured.crashes.push(await during(clients, kept, crash));
      await side.cut('b', false);
      await settled(...HOSTS);
    }
    if (selected.has('bgp-last-host')) {
      bench.report(`bgp-last-host: ${run} of ${runs}`);
      for (const host of ['a', 'b']) await side.stand(host, true);
      await settled('c');
      const last = async (): Promise<void> => {
        await side.stand('c', true);
        await pause(1_500);
      };
      measured.last.push((await during(clients, [], last)).visits);
      for (const host of HOSTS) await side.stand(host, false);
    }
  }
  return measured;
}

/** New connections all the time, and open ones, during `work`. */
async function during(
  { visitors, keepers }: Clients,
  vips: readonly string[],
  work: () => Promise<void>,
): Promise<Change> {
  const kept = vips.map((address, at) => ({ address, ask: keepers[at] as Clients['keepers'][number] }));
  for (const { address, ask } of kept) await ask({ kind: 'keep', address, port: VIP_PORT, count: KEPT });
  await visitors({ kind: 'visit', address: VIP, port: VIP_PORT });
  await pause(1_000);
  await work();
  await pause(500);
  const visits = await visitors<Visits>({ kind: 'end' });
  return { visits, kept: await Promise.all(kept.map(({ ask }) => ask<Kept>({ kind: 'release' }))) };
}

const failedOf = (visits: readonly Visits[]): number => sum(visits.map(({ failed }) => failed));
const cutOf = (all: readonly Change[], at: number): number => sum(all.map(({ kept }) => kept[at]?.cut ?? 0));
const newOf = (all: readonly Change[]): readonly Visits[] => all.map(({ visits }) => visits);

function crashRow({ crashes, own }: Measured, plain: Measured): Row {
  const times = newOf(crashes).map(({ during }) => during / 1_000);
  const byHand = newOf(plain.crashes).map(({ during }) => during / 1_000);
  const [haproxy, kernel, all] = [cutOf(crashes, 0), cutOf(crashes, 1), KEPT * crashes.length];
  return row({
    name: 'bgp-crash',
    value: median(times),
    unit: 's',
    target:
      '≤ 0.35 s, each time; open connections: of HAProxy only those of the host end, of the kernel path ≤ 1 %',
    met: Math.max(...times) <= 0.35 && haproxy <= sum(own) && kernel <= 0.01 * all,
    reference: { name: 'BIRD and HAProxy by hand', value: median(byHand) },
    others: [
      { name: 'by hand: longest', value: Math.max(...byHand) },
      { name: `by hand: open connections that end, of ${all}`, value: cutOf(plain.crashes, 0) },
    ],
    details: {
      longest: Math.max(...times),
      runs: times.length,
      'open connections of each engine': all,
      'of HAProxy that end': haproxy,
      'that the host had': sum(own),
      'of the kernel path that end': kernel,
    },
  });
}

function maintenanceRow({ maintenance }: Measured, plain: Measured): Row {
  const value = failedOf(newOf(maintenance));
  const [haproxy, kernel, all] = [cutOf(maintenance, 0), cutOf(maintenance, 1), KEPT * maintenance.length];
  return row({
    name: 'bgp-maintenance',
    value,
    unit: 'failed connections',
    target: '0 new connections fail, and 0 open ones of 300 end, of HAProxy and of the kernel path',
    met: value === 0 && haproxy + kernel === 0,
    reference: { name: 'all lines of the host removed by hand', value: failedOf(newOf(plain.maintenance)) },
    others: [{ name: `by hand: open connections that end, of ${all}`, value: cutOf(plain.maintenance, 0) }],
    details: {
      runs: maintenance.length,
      'new connections': sum(newOf(maintenance).map(({ connections }) => connections)),
      'open connections of each engine': all,
      'of HAProxy that end': haproxy,
      'of the kernel path that end': kernel,
    },
  });
}

function lastHostRow({ last }: Measured, plain: Measured): Row {
  return row({
    name: 'bgp-last-host',
    value: failedOf(last),
    unit: 'failed connections',
    target: '0 new connections fail',
    met: failedOf(last) === 0,
    reference: { name: 'all lines of the last host removed by hand', value: failedOf(plain.last) },
    details: { runs: last.length, 'new connections': sum(last.map(({ connections }) => connections)) },
  });
}

async function allVips(bench: Bench, scratch: Scratch): Promise<void> {
  const vips = bench.scaled(5_000, 10);
  const hosts = ['a', 'b'];
  const plain = await startPlainHosts(bench, scratch, hosts, vips);
  const byHand = await moves(bench, plain, vips);
  const agents = await startAgentHosts(bench, scratch, { hosts, vips, kernelVips: [] });
  const values = await moves(bench, agents, vips);
  bench.measured(
    row({
      name: 'bgp-5k',
      value: median(values),
      unit: 's',
      target: '≤ 0.5 s, each time',
      met: Math.max(...values) <= 0.5,
      reference: { name: 'BIRD by hand', value: median(byHand) },
      details: { longest: Math.max(...values), runs: values.length, VIPs: vips },
    }),
  );
}

/** Seconds until the router leads nothing to a host that is cut off. */
async function moves(bench: Bench, side: Side, vips: number): Promise<readonly number[]> {
  const took: number[] = [];
  for (let run = 1; run <= bench.scaled(RUNS); run++) {
    for (const at of [0, vips >> 1, vips - 1]) await side.settled(vipAt(at), 'a', 'b');
    await pause(2_000);
    bench.report(`bgp-5k: ${run} of ${bench.scaled(RUNS)}`);
    const way = `via ${side.network.v4('b')} `;
    const since = monotonic();
    await side.cut('b', true);
    for (const end = since + 30_000; (await side.network.run('router', 'ip', 'route')).includes(way); )
      if (monotonic() > end) throw new Error('The router still leads to a host that is cut off');
    took.push((monotonic() - since) / 1_000);
    await side.cut('b', false);
  }
  return took;
}
