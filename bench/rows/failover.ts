// `failover-power`: the longest time without an answer when the active host stops and its link is cut, seen by a client
// that opens a connection every 5 ms. `failover-planned`: new connections that fail while the active host hands over
// under load, and those that were there before and end. `vips-1k`: from the loss of power to the moment at which the last of 1,000 VIPs takes connections again.
// All in network namespaces, beside keepalived and HAProxy with files written by hand, with the same intervals.

import { monotonic } from '../api/monotonic.ts';
import { startAgentPair } from '../pair/agent-pair.ts';
import type { ClientOrder, Reached, Watched } from '../pair/client-process.ts';
import { MEMBER_PORT, otherThan, type PairContender, PORT, vipAt } from '../pair/contender.ts';
import { demandPair } from '../pair/demand-pair.ts';
import type { Kept } from '../pair/kept-connections.ts';
import { PairNetwork } from '../pair/network.ts';
import { startPlainPair } from '../pair/plain-pair.ts';
import { responder, startHaproxy } from '../support/haproxy.ts';
import { isolated } from '../support/isolated.ts';
import { startLoad } from '../support/load.ts';
import { startModule } from '../support/processes.ts';
import { type Bench, type Benchmark, type Row, row } from '../support/row.ts';
import { type Scratch, withScratch } from '../support/scratch.ts';
import { median, sum } from '../support/statistics.ts';
import { pause } from '../support/until.ts';

const ROWS = ['failover-power', 'failover-planned', 'vips-1k'] as const;
const RUNS: Readonly<Record<(typeof ROWS)[number], number>> = {
  'failover-power': 5,
  'failover-planned': 6,
  'vips-1k': 3,
};
/** Connections that are there before it, and asked on throughout. */
const KEPT = 20;
/** New connections a second while a host hands over, and seconds of them. */
const RATE = 200;
const SECONDS = 4;

export const failover: Benchmark = {
  rows: ROWS,
  run: async (bench, wanted) => {
    demandPair();
    return isolated(import.meta.url, bench, wanted);
  },
};

export async function measure(bench: Bench, wanted: ReadonlySet<string>): Promise<readonly Row[]> {
  const own = await withScratch((scratch) => measurePair(bench, scratch, wanted, startAgentPair));
  const its = await withScratch((scratch) => measurePair(bench, scratch, wanted, startPlainPair));
  const rows: Row[] = [];
  if (wanted.has('failover-power')) rows.push(powerRow(own, its));
  if (wanted.has('failover-planned')) rows.push(plannedRow(own, its));
  if (wanted.has('vips-1k')) rows.push(vipsRow(own, its));
  return rows;
}

interface Measured {
  /** Milliseconds, of each run. */
  readonly outages: number[];
  readonly takeovers: { readonly first: number; readonly last: number }[];
  /** Of all handovers. */
  readonly planned: {
    requests: number;
    slowest: number;
    readonly failures: number[];
    readonly whys: Map<string, number>;
    /** Connections that were there before, and how many of them ended. */
    kept: number;
    cut: number;
  };
  readonly vips: number;
}

async function measurePair(
  bench: Bench,
  scratch: Scratch,
  wanted: ReadonlySet<string>,
  start: typeof startAgentPair,
): Promise<Measured> {
  const vips = bench.scaled(1_000, 10);
  const network = await PairNetwork.make(scratch);
  const { body, globals } = responder(`${network.address('member')}:${MEMBER_PORT}`);
  await startHaproxy(scratch, 'member', bench.haproxy, body, { globals, within: network.within('member') });
  const pair = await start(bench, scratch, network, vips);
  const within = network.within('client');
  const client = startModule(
    scratch,
    'client',
    new URL('../pair/client-process.ts', import.meta.url),
    [],
    within,
  );
  const ask = <T>(order: ClientOrder): Promise<T> => client.ask<T>(order);
  const load = startLoad(scratch, within);
  const addresses = Array.from({ length: vips }, (_, index) => vipAt(index));
  const none = { requests: 0, slowest: 0, kept: 0, cut: 0 };
  const planned = { ...none, failures: [] as number[], whys: new Map<string, number>() };
  const measured: Measured = { outages: [], takeovers: [], planned, vips };
  const say = (text: string, run: number, runs: number): void =>
    bench.say(`${text}: ${pair.name}, ${run} of ${runs}`);

  for (const name of ROWS) {
    const runs = wanted.has(name) ? bench.scaled(RUNS[name]) : 0;
    for (let run = 1; run <= runs; run++) {
      await pair.settled();
      // The client knows the host that has them as its neighbour.
      await ask<Reached>({ kind: 'reach', addresses, port: PORT });
      say(name, run, runs);
      if (name === 'failover-power') measured.outages.push(await powerLoss(network, pair, ask));
      else if (name === 'failover-planned') await handover(pair, ask, load, measured);
      else measured.takeovers.push(await takeover(network, pair, ask, addresses));
    }
  }
  return measured;
}

type Ask = <T>(order: ClientOrder) => Promise<T>;

/** The longest time without an answer. */
async function powerLoss(network: PairNetwork, pair: PairContender, ask: Ask): Promise<number> {
  const active = await pair.settled();
  await ask({ kind: 'watch', address: vipAt(0), port: PORT });
  await pause(500 + Math.random() * 200);
  network.fail(active);
  await pause(2_000);
  const { outage, answers } = await ask<Watched>({ kind: 'end' });
  network.recover(active);
  if (answers === 0) throw new Error('Nothing was answered');
  return outage;
}

async function handover(
  pair: PairContender,
  ask: Ask,
  load: ReturnType<typeof startLoad>,
  { planned }: Measured,
): Promise<void> {
  const active = await pair.settled();
  await ask({ kind: 'keep', address: vipAt(0), port: PORT, count: KEPT });
  const loading = load({ addresses: [vipAt(0)], port: PORT, rate: RATE, seconds: SECONDS });
  await pause(1_000);
  await pair.handOver(active);
  const { requests, failures, took } = await loading;
  const { connections, cut } = await ask<Kept>({ kind: 'release' });
  planned.kept += connections;
  planned.cut += cut;
  planned.requests += requests;
  planned.slowest = took.reduce((most, each) => Math.max(most, each), planned.slowest);
  planned.failures.push(failures.length);
  for (const { why } of failures) planned.whys.set(why, (planned.whys.get(why) ?? 0) + 1);
  await pair.restore();
}

/** Milliseconds from the loss of power to the first VIP that takes connections again, and to the last one. */
async function takeover(
  network: PairNetwork,
  pair: PairContender,
  ask: Ask,
  addresses: readonly string[],
): Promise<{ readonly first: number; readonly last: number }> {
  const active = await pair.settled();
  await pause(Math.random() * 200);
  const began = monotonic();
  network.fail(active);
  const { first, last } = await ask<Reached>({ kind: 'reach', addresses, port: PORT });
  const held = network.held(otherThan(active)).length;
  network.recover(active);
  if (held !== addresses.length + 1) throw new Error(`Of ${addresses.length + 1} addresses ${held} are held`);
  return { first: first - began, last: last - began };
}

function powerRow(own: Measured, its: Measured): Row {
  const [value, most] = [median(own.outages) / 1_000, Math.max(...own.outages) / 1_000];
  return row({
    name: 'failover-power',
    value,
    unit: 's',
    target: '≤ 0.75 s, each time',
    met: most <= 0.75,
    reference: { name: 'keepalived by hand', value: median(its.outages) / 1_000 },
    others: [{ name: 'keepalived by hand, longest', value: Math.max(...its.outages) / 1_000 }],
    details: {
      shortest: Math.min(...own.outages) / 1_000,
      longest: most,
      runs: own.outages.length,
      VIPs: own.vips,
    },
  });
}

function plannedRow({ planned: own, vips }: Measured, { planned: its }: Measured): Row {
  const value = sum(own.failures);
  return row({
    name: 'failover-planned',
    value,
    unit: 'failed requests',
    target: '0 failed requests',
    met: value === 0,
    reference: { name: 'keepalived by hand, stopped in order: failed requests', value: sum(its.failures) },
    others: [
      { name: 'keepalived by hand: slowest in ms', value: its.slowest },
      { name: `keepalived by hand: connections cut, of ${its.kept}`, value: its.cut },
    ],
    details: {
      requests: own.requests,
      handovers: own.failures.length,
      'slowest in ms': own.slowest,
      'connections before': own.kept,
      'connections cut': own.cut,
      VIPs: vips,
      ...Object.fromEntries(own.whys),
    },
  });
}

function vipsRow(own: Measured, its: Measured): Row {
  const lasts = own.takeovers.map(({ last }) => last / 1_000);
  return row({
    name: 'vips-1k',
    value: median(lasts),
    unit: 's',
    target: '≤ 1 s, each time',
    met: Math.max(...lasts) <= 1,
    reference: { name: 'keepalived by hand', value: median(its.takeovers.map(({ last }) => last / 1_000)) },
    details: {
      longest: Math.max(...lasts),
      'first VIP': median(own.takeovers.map(({ first }) => first / 1_000)),
      runs: lasts.length,
      VIPs: own.vips,
    },
  });
}
