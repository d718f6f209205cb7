// A pair with 1,000 VIPs and a client that connects every 5 ms. `fault-...`: the longest time without an answer for each
// fault of the active host. `two-masters`: the time until both agents report two masters. `start-together`: the time until
// two hosts that start together serve. `vips-churn`: the effect of VIPs that change on one host seconds before the other.

import { monotonic } from '../api/monotonic.ts';
import { timesLogged, whenLogged } from '../pair/agent-log.ts';
import type { ClientOrder, Reached, Watched } from '../pair/client-process.ts';
import { MEMBER_PORT, otherThan, PORT, vipAt } from '../pair/contender.ts';
import { demandPair } from '../pair/demand-pair.ts';
import { type Fault, faults } from '../pair/faults.ts';
import { type HostName, PairNetwork } from '../pair/network.ts';
import { HOSTS, TwoAgents } from '../pair/two-agents.ts';
import { churn } from '../pair/vip-churn.ts';
import { beforeOthers } from '../support/client-start.ts';
import { responder, startHaproxy } from '../support/haproxy.ts';
import { isolated } from '../support/isolated.ts';
import { startModule } from '../support/processes.ts';
import { type Bench, type Benchmark, type Row, row } from '../support/row.ts';
import { type Scratch, withScratch } from '../support/scratch.ts';
import { median } from '../support/statistics.ts';
import { pause, until } from '../support/until.ts';

const RUNS = 3;
/** Changes of `vips-churn`, two seconds each; BENCH_CHANGES makes a shorter run. */
const CHANGES = Number(process.env.BENCH_CHANGES ?? 100);
/** The target of `vips-churn`. */
const MAX_GAP_MS = 50;

export const pairFaults: Benchmark = {
  rows: [...faults.map((fault) => fault.row), 'two-masters', 'start-together', 'vips-churn'],
  run: async (bench, selected) => {
    demandPair();
    return isolated(import.meta.url, bench, selected);
  },
};

export function measure(bench: Bench, selected: ReadonlySet<string>): Promise<void> {
  return withScratch(async (scratch) => {
    const rig = await makeRig(bench, scratch);
    const rest = await atRest(rig, 5_000);
    for (const fault of faults) {
      const showsTwoMasters = fault.row === 'fault-vrrp-cut' && selected.has('two-masters');
      if (!selected.has(fault.row) && !showsTwoMasters) continue;
      const costs: number[] = [];
      const reports: number[] = [];
      for (let run = 1; run <= bench.scaled(RUNS); run++) {
        bench.report(`${fault.row}: ${run} of ${bench.scaled(RUNS)}`);
        const { outage, reported } = await suffer(rig, fault);
        costs.push(outage);
        reports.push(reported);
      }
      if (selected.has(fault.row)) bench.measured(faultRow(fault, costs, rest, rig.vips));
      if (showsTwoMasters) bench.measured(mastersRow(reports));
    }
    if (selected.has('start-together')) bench.measured(await startTogether(bench, rig));
    if (selected.has('vips-churn')) bench.measured(await churnRow(bench, rig));
  });
}

interface Rig {
  readonly agents: TwoAgents;
  readonly vips: number;
  readonly ask: Ask;
  /** A second client, which watches the hosts themselves. */
  readonly askHosts: Ask;
}

type Ask = <T>(order: ClientOrder) => Promise<T>;

/** A responder on each host listens on this port without the agent, so that its outages come from VRRP alone. */
const HOST_PORT = 8_090;

async function makeRig(bench: Bench, scratch: Scratch): Promise<Rig> {
  const vips = bench.scaled(1_000, 10);
  const network = await PairNetwork.make(scratch);
  const { body, globals } = responder(`${network.address('member')}:${MEMBER_PORT}`);
  await startHaproxy(scratch, 'member', bench.haproxy, body, { globals, within: network.within('member') });
  const ofHost = responder(`:${HOST_PORT}`);
  for (const host of HOSTS) {
    const options = { globals: ofHost.globals, within: [...network.within(host), ...beforeOthers()] };
    await startHaproxy(scratch, `responder-${host}`, bench.haproxy, ofHost.body, options);
  }
  const agents = await TwoAgents.start(bench, scratch, network, vips);
  const module = new URL('../pair/client-process.ts', import.meta.url);
  // A wait of the client for a processor must not count as an outage.
  const within = [...network.within('client'), ...beforeOthers()];
  const [client, other] = ['client', 'other-client'].map((name) =>
    startModule(scratch, name, module, [], within),
  ) as [ReturnType<typeof startModule>, ReturnType<typeof startModule>];
  return { agents, vips, ask: (order) => client.ask(order), askHosts: (order) => other.ask(order) };
}

/** Resolves with the client's longest time without an answer during `work`, in milliseconds. */
async function watched(ask: Ask, work: () => Promise<void>, port = PORT): Promise<number> {
  await ask({ kind: 'watch', address: vipAt(0), port });
  await work();
  // The outage is complete only with an answer after it.
  await ask<Reached>({ kind: 'reach', addresses: [vipAt(0)], port });
  await pause(200);
  const { outage, answers } = await ask<Watched>({ kind: 'end' });
  if (answers === 0) throw new Error('The client has received no answer');
  return outage;
}

async function atRest(rig: Rig, milliseconds: number): Promise<number> {
  await rig.agents.settled();
  return watched(rig.ask, () => pause(milliseconds));
}

/** Resolves with milliseconds: the client's outage, and the time until both agents had reported two masters. */
async function suffer(
  rig: Rig,
  fault: Fault,
): Promise<{ readonly outage: number; readonly reported: number }> {
  const { agents, ask, vips } = rig;
  const active = await agents.settled();
  // Fills the client's neighbour table with the active host.
  const addresses = Array.from({ length: vips }, (_, index) => vipAt(index));
  await ask<Reached>({ kind: 'reach', addresses, port: PORT });
  let struck = 0;
  const outage = await watched(ask, async () => {
    await pause(500 + Math.random() * 200);
    struck = Date.now();
    fault.strike(agents, active);
    await pause(fault.lastsSeconds * 1_000);
  });
  fault.undo(agents, active);
  const second = whenMaster(agents, otherThan(active), struck) ?? Number.NaN;
  const reports = HOSTS.map((host) =>
    whenLogged(agents.agent(host).output(), struck, ({ message }) =>
      message.startsWith('Both hosts of the pair'),
    ),
  );
  return { outage, reported: Math.max(...reports.map((time) => (time ?? Number.NaN) - second)) };
}

function whenMaster(agents: TwoAgents, host: HostName, since: number): number | undefined {
  return whenLogged(
    agents.agent(host).output(),
    since,
    ({ message, state }) => message === 'VRRP has changed its state' && state === 'master',
  );
}

function faultRow(
  { row: name, mostSeconds: most }: Fault,
  costs: readonly number[],
  rest: number,
  vips: number,
): Row {
  return row({
    name,
    value: median(costs) / 1_000,
    unit: 's',
    target: `≤ ${most} s, each time`,
    met: Math.max(...costs) <= most * 1_000,
    reference: { name: 'no fault', value: rest / 1_000 },
    details: {
      shortest: Math.min(...costs) / 1_000,
      longest: Math.max(...costs) / 1_000,
      runs: costs.length,
      VIPs: vips,
    },
  });
}

function mastersRow(reports: readonly number[]): Row {
  return row({
    name: 'two-masters',
    value: median(reports) / 1_000,
    unit: 's',
    target: '≤ 2 s until both agents report two masters, each time',
    met: Math.max(...reports) <= 2_000,
    reference: { name: 'time allowed to end up with one master', value: 1 },
    details: { longest: Math.max(...reports) / 1_000, runs: reports.length },
  });
}

/** All processes of both hosts end; both start at the same moment with their old files. */
async function startTogether(bench: Bench, { agents, ask, vips }: Rig): Promise<Row> {
  const served: number[] = [];
  const together: number[] = [];
  for (let run = 1; run <= bench.scaled(RUNS); run++) {
    await agents.settled();
    bench.report(`start-together: ${run} of ${bench.scaled(RUNS)}`);
    await Promise.all(HOSTS.map((host) => agents.end(host)));
    await until('No host holds a VIP', () => HOSTS.every((host) => agents.network.held(host).length === 0));
    const [since, began] = [Date.now(), monotonic()];
    for (const host of HOSTS) agents.start(host);
    const { first } = await ask<Reached>({ kind: 'reach', addresses: [vipAt(0)], port: PORT });
    served.push(first - began);
    await agents.settled();
    together.push(bothMaster(agents, since));
  }
  return row({
    name: 'start-together',
    value: median(served) / 1_000,
    unit: 's',
    target: 'one master, two masters for at most 1 s',
    met: Math.max(...together) <= 1_000,
    reference: { name: 'longest time with two masters', value: Math.max(...together) / 1_000 },
    details: { longest: Math.max(...served) / 1_000, runs: served.length, VIPs: vips },
  });
}

/** Milliseconds with two masters after `since`. */
function bothMaster(agents: TwoAgents, since: number): number {
  const times = HOSTS.map((host) => whenMaster(agents, host, since));
  if (times.includes(undefined)) return 0;
  const second = Math.max(...times.map((time) => time ?? 0));
  const givenUp = HOSTS.map((host) =>
    whenLogged(
      agents.agent(host).output(),
      second,
      ({ message, state }) => message === 'VRRP has changed its state' && state === 'backup',
    ),
  );
  return Math.min(...givenUp.map((time) => time ?? Number.POSITIVE_INFINITY)) - second;
}

async function churnRow(bench: Bench, rig: Rig): Promise<Row> {
  const { agents, vips: count } = rig;
  const changes = bench.scaled(CHANGES);
  const active = await agents.settled();
  bench.report(`vips-churn: ${changes} changes`);
  let { missed, transitions } = { missed: Number.NaN, transitions: Number.NaN };
  let ofVrrp = Number.NaN;
  const since = Date.now();
  const outage = await watched(rig.ask, async () => {
    const work = async (): Promise<void> => {
      ({ missed, transitions } = await churn(agents, active, { what: 'vips', count, changes }));
    };
    ofVrrp = await watched(rig.askHosts, work, HOST_PORT);
  });
  // On a busy machine HAProxy can be silent during a reload for so long that its host is lowered, as designed.
  const lowered = HOSTS.flatMap((host) =>
    timesLogged(agents.agent(host).output(), since, ({ message }) =>
      message.startsWith('This host is lowered'),
    ),
  );
  const few = bench.scaled(CHANGES / 4);
  bench.report(`vips-churn: ${few} changes of ports`);
  const ofPorts = await watched(rig.ask, async () => {
    await churn(agents, await agents.settled(), { what: 'ports', count, changes: few });
  });
  return row({
    name: 'vips-churn',
    value: ofVrrp,
    unit: 'ms',
    target: `≤ ${MAX_GAP_MS} ms without an answer from the host and through HAProxy, no change of master`,
    met: Math.max(ofVrrp, outage) <= MAX_GAP_MS && transitions === 0,
    reference: { name: 'through HAProxy, reloaded at each change', value: outage },
    others: [{ name: 'changes of ports instead of VIPs, through HAProxy', value: ofPorts }],
    details: {
      changes,
      'advertisements missed': missed,
      'changes of master': transitions,
      'times a host was lowered': lowered.length,
      VIPs: count,
    },
  });
}
