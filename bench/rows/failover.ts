// `failover-power`: the longest time without an answer for a client that connects every 5 ms, when the active host stops
// and its link is cut. `failover-planned`: new connections that fail, and old ones that end, while the active host hands
// over under load. `vips-1k`: the time from the loss of power until the last of 1,000 VIPs takes connections again.
// Reference: keepalived and HAProxy with hand-written files and the same intervals. All hosts are network namespaces.

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
/** Connections that are open before the handover and have requests throughout. */
const KEPT = 20;
/** New connections a second during the handover, and their duration. */
const RATE = 200;
const LOAD_SECONDS = 4;

export const failover: Benchmark = {
  rows: ROWS,
  run: async (bench, selected) => {
    demandPair();
    return isolated(import.meta.url, bench, selected);
  },
};

export async function measure(bench: Bench, selected: ReadonlySet<string>): Promise<void> {
  const agent = await withScratch((scratch) => measurePair(bench, scratch, selected, startAgentPair));
  const plain = await withScratch((scratch) => measurePair(bench, scratch, selected, startPlainPair));
  if (selected.has('failover-power')) bench.measured(powerRow(agent, plain));
  if (selected.has('failover-planned')) bench.measured(plannedRow(agent, plain));
  if (selected.has('vips-1k')) bench.measured(vipsRow(agent, plain));
}

interface Measured {
  /** Milliseconds in each run. */
  readonly outages: number[];
  readonly takeovers: { readonly first: number; readonly last: number }[];
  /** The sums of all handovers. */
  readonly planned: {
    requests: number;
    slowest: number;
    readonly failures: number[];
    readonly whys: Map<string, number>;
    /** Connections that were open before the handover, and how many of them ended. */
    kept: number;
    cut: number;
  };
  readonly vips: number;
}

async function measurePair(
  bench: Bench,
  scratch: Scratch,
  selected: ReadonlySet<string>,
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

  for (const name of ROWS) {
    const runs = selected.has(name) ? bench.scaled(RUNS[name]) : 0;
    for (let run = 1; run <= runs; run++) {
      await pair.settled();
      // Fills the client's neighbour table with the active host.
      await ask<Reached>({ kind: 'reach', addresses, port: PORT });
      bench.report(`${name}: ${pair.name}, ${run} of ${runs}`);
      if (name === 'failover-power') measured.outages.push(await powerLoss(network, pair, ask));
      else if (name === 'failover-planned') await handover(pair, ask, load, measured);
      else measured.takeovers.push(await takeover(network, pair, ask, addresses));
    }
  }
  return measured;
}

type Ask = <T>(order: ClientOrder) => Promise<T>;

/** Resolves with the longest time without an answer. */
async function powerLoss(network: PairNetwork, pair: PairContender, ask: Ask): Promise<number> {
  const active = await pair.settled();
  await ask({ kind: 'watch', address: vipAt(0), port: PORT });
  await pause(500 + Math.random() * 200);
  network.fail(active);
  await pause(2_000);
  const { outage, answers } = await ask<Watched>({ kind: 'end' });
  network.recover(active);
  if (answers === 0) throw new Error('The client has received no answer');
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
  const loading = load({ addresses: [vipAt(0)], port: PORT, rate: RATE, seconds: LOAD_SECONDS });
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

/** Resolves with the milliseconds from the loss of power until the first and the last VIP take connections again. */
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
  if (held !== addresses.length + 1)
    throw new Error(`The host holds ${held} of ${addresses.length + 1} addresses`);
  return { first: first - began, last: last - began };
}

function powerRow(agent: Measured, plain: Measured): Row {
  const [value, most] = [median(agent.outages) / 1_000, Math.max(...agent.outages) / 1_000];
  return row({
    name: 'failover-power',
    value,
    unit: 's',
    target: '≤ 0.75 s, each time',
    met: most <= 0.75,
    reference: { name: 'hand-written keepalived', value: median(plain.outages) / 1_000 },
    others: [{ name: 'hand-written keepalived, longest', value: Math.max(...plain.outages) / 1_000 }],
    details: {
      shortest: Math.min(...agent.outages) / 1_000,
      longest: most,
      runs: agent.outages.length,
      VIPs: agent.vips,
    },
  });
}

function plannedRow({ planned: agent, vips }: Measured, { planned: plain }: Measured): Row {
  const value = sum(agent.failures);
  return row({
    name: 'failover-planned',
    value,
    unit: 'failed requests',
    target: '0 failed requests',
    met: value === 0,
    reference: {
      name: 'hand-written keepalived, stopped gracefully: failed requests',
      value: sum(plain.failures),
    },
    others: [
      { name: 'hand-written keepalived: slowest in ms', value: plain.slowest },
      { name: `hand-written keepalived: connections cut, of ${plain.kept}`, value: plain.cut },
    ],
    details: {
      requests: agent.requests,
      handovers: agent.failures.length,
      'slowest in ms': agent.slowest,
      'connections before': agent.kept,
      'connections cut': agent.cut,
      VIPs: vips,
      ...Object.fromEntries(agent.whys),
    },
  });
}

function vipsRow(agent: Measured, plain: Measured): Row {
  const lasts = agent.takeovers.map(({ last }) => last / 1_000);
  return row({
    name: 'vips-1k',
    value: median(lasts),
    unit: 's',
    target: '≤ 1 s, each time',
    met: Math.max(...lasts) <= 1,
    reference: {
      name: 'hand-written keepalived',
      value: median(plain.takeovers.map(({ last }) => last / 1_000)),
    },
    details: {
      longest: Math.max(...lasts),
      'first VIP': median(agent.takeovers.map(({ first }) => first / 1_000)),
      runs: lasts.length,
      VIPs: agent.vips,
    },
  });
}
