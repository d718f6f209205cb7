// What each fault of the active host costs a client that opens a connection every 5 ms (`fault-...`), how soon two
// masters are reported (`two-masters`), how long two hosts that start together need (`start-together`), and what 100
// VIPs that come or go on one host seconds before the other do to the pair (`vips-churn`). All with 1,000 VIPs.

import { monotonic } from '../api/monotonic.ts';
import { timesSaid, whenSaid } from '../pair/agent-log.ts';
import type { ClientOrder, Reached, Watched } from '../pair/client-process.ts';
import { MEMBER_PORT, otherThan, PORT, vipAt } from '../pair/contender.ts';
import { demandPair } from '../pair/demand-pair.ts';
import { type Fault, faults } from '../pair/faults.ts';
import { type HostName, PairNetwork } from '../pair/network.ts';
import { HOSTS, TwoAgents } from '../pair/two-agents.ts';
import { churn } from '../pair/vip-churn.ts';
import { responder, startHaproxy } from '../support/haproxy.ts';
import { isolated } from '../support/isolated.ts';
import { startModule } from '../support/processes.ts';
import { type Bench, type Benchmark, type Row, row } from '../support/row.ts';
import { type Scratch, withScratch } from '../support/scratch.ts';
import { median } from '../support/statistics.ts';
import { pause, until } from '../support/until.ts';

const RUNS = 3;
/** Of `vips-churn`; BENCH_CHANGES is another number, for a shorter try: each takes two seconds. */
const CHANGES = Number(process.env.BENCH_CHANGES ?? 100);
/** Of `vips-churn`, milliseconds. */
const GAP = 50;

export const pairFaults: Benchmark = {
  rows: [...faults.map((fault) => fault.row), 'two-masters', 'start-together', 'vips-churn'],
  run: async (bench, wanted) => {
    demandPair();
    return isolated(import.meta.url, bench, wanted);
  },
};

export function measure(bench: Bench, wanted: ReadonlySet<string>): Promise<readonly Row[]> {
  return withScratch(async (scratch) => {
    const rig = await makeRig(bench, scratch);
    const rows: Row[] = [];
    const rest = await atRest(rig, 5_000);
    for (const fault of faults) {
      const isOfMasters = fault.row === 'fault-vrrp-cut' && wanted.has('two-masters');
      if (!wanted.has(fault.row) && !isOfMasters) continue;
      const costs: number[] = [];
      const reports: number[] = [];
      for (let run = 1; run <= bench.scaled(RUNS); run++) {
        bench.say(`${fault.row}: ${run} of ${bench.scaled(RUNS)}`);
        const { outage, reported } = await suffer(rig, fault);
        costs.push(outage);
        reports.push(reported);
      }
      if (wanted.has(fault.row)) rows.push(faultRow(fault, costs, rest, rig.vips));
      if (isOfMasters) rows.push(mastersRow(reports));
    }
    if (wanted.has('start-together')) rows.push(await startTogether(bench, rig));
    if (wanted.has('vips-churn')) rows.push(await churnRow(bench, rig));
    return rows;
  });
}

interface Rig {
  readonly agents: TwoAgents;
  readonly vips: number;
  readonly ask: Ask;
  /** Another client's, for the hosts themselves. */
  readonly askHosts: Ask;
}

type Ask = <T>(order: ClientOrder) => Promise<T>;

/** On each host something answers at this port that no change of the pair touches: what VRRP alone costs. */
const HOST_PORT = 8_090;

async function makeRig(bench: Bench, scratch: Scratch): Promise<Rig> {
  const vips = bench.scaled(1_000, 10);
  const network = await PairNetwork.make(scratch);
  const { body, globals } = responder(`${network.address('member')}:${MEMBER_PORT}`);
  await startHaproxy(scratch, 'member', bench.haproxy, body, { globals, within: network.within('member') });
  const ofHost = responder(`:${HOST_PORT}`);
  for (const host of HOSTS) {
    const options = { globals: ofHost.globals, within: [...network.within(host), 'chrt', '--rr', '10'] };
    await startHaproxy(scratch, `responder-${host}`, bench.haproxy, ofHost.body, options);
  }
  const agents = await TwoAgents.start(bench, scratch, network, vips);
  const module = new URL('../pair/client-process.ts', import.meta.url);
  // In truth a client has a machine of its own: what else keeps this one busy shall not count as an outage.
  const within = [...network.within('client'), 'chrt', '--rr', '10'];
  const [client, other] = ['client', 'other-client'].map((name) =>
    startModule(scratch, name, module, [], within),
  ) as [ReturnType<typeof startModule>, ReturnType<typeof startModule>];
  return { agents, vips, ask: (order) => client.ask(order), askHosts: (order) => other.ask(order) };
}

/** The client's longest time without an answer while something goes on, milliseconds. */
async function watched(ask: Ask, work: () => Promise<void>, port = PORT): Promise<number> {
  await ask({ kind: 'watch', address: vipAt(0), port });
  await work();
  // Without an answer at the end the time without one would not be known.
  await ask<Reached>({ kind: 'reach', addresses: [vipAt(0)], port });
  await pause(200);
  const { outage, answers } = await ask<Watched>({ kind: 'end' });
  if (answers === 0) throw new Error('Nothing was answered');
  return outage;
}

async function atRest(rig: Rig, milliseconds: number): Promise<number> {
  await rig.agents.settled();
  return watched(rig.ask, () => pause(milliseconds));
}

/** Milliseconds: what it cost the client, and until both agents had said that there were two masters. */
async function suffer(
  rig: Rig,
  fault: Fault,
): Promise<{ readonly outage: number; readonly reported: number }> {
  const { agents, ask, vips } = rig;
  const active = await agents.settled();
  // The client knows the host that has them as its neighbour.
  const addresses = Array.from({ length: vips }, (_, index) => vipAt(index));
  await ask<Reached>({ kind: 'reach', addresses, port: PORT });
  let struck = 0;
  const outage = await watched(ask, async () => {
    await pause(500 + Math.random() * 200);
    struck = Date.now();
    fault.strike(agents, active);
    await pause(fault.lasts * 1_000);
  });
  fault.undo(agents, active);
  const second = whenMaster(agents, otherThan(active), struck) ?? Number.NaN;
  const said = HOSTS.map((host) =>
    whenSaid(agents.agent(host).said(), struck, ({ message }) =>
      message.startsWith('Both hosts of the pair'),
    ),
  );
  return { outage, reported: Math.max(...said.map((time) => (time ?? Number.NaN) - second)) };
}

function whenMaster(agents: TwoAgents, host: HostName, since: number): number | undefined {
  return whenSaid(
    agents.agent(host).said(),
    since,
    ({ message, state }) => message === 'VRRP has changed its state' && state === 'master',
  );
}

function faultRow({ row: name, most }: Fault, costs: readonly number[], rest: number, vips: number): Row {
  return row({
    name,
    value: median(costs) / 1_000,
    unit: 's',
    target: `≤ ${most} s, each time`,
    met: Math.max(...costs) <= most * 1_000,
    reference: { name: 'nothing happens', value: rest / 1_000 },
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
    target: '≤ 2 s until both agents report them, each time',
    met: Math.max(...reports) <= 2_000,
    reference: { name: 'that two hosts may need to settle it', value: 1 },
    details: { longest: Math.max(...reports) / 1_000, runs: reports.length },
  });
}

/** Both hosts lose everything that runs, and start in the same moment with the files that they had. */
async function startTogether(bench: Bench, { agents, ask, vips }: Rig): Promise<Row> {
  const served: number[] = [];
  const together: number[] = [];
  for (let run = 1; run <= bench.scaled(RUNS); run++) {
    await agents.settled();
    bench.say(`start-together: ${run} of ${bench.scaled(RUNS)}`);
    await Promise.all(HOSTS.map((host) => agents.end(host)));
    await until('All VIPs are gone', () => HOSTS.every((host) => agents.network.held(host).length === 0));
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
    target: 'one master, and none besides it for longer than 1 s',
    met: Math.max(...together) <= 1_000,
    reference: { name: 'longest with two masters', value: Math.max(...together) / 1_000 },
    details: { longest: Math.max(...served) / 1_000, runs: served.length, VIPs: vips },
  });
}

/** Milliseconds for which both hosts were master since then. */
function bothMaster(agents: TwoAgents, since: number): number {
  const times = HOSTS.map((host) => whenMaster(agents, host, since));
  if (times.includes(undefined)) return 0;
  const second = Math.max(...times.map((time) => time ?? 0));
  const givesWay = HOSTS.map((host) =>
    whenSaid(
      agents.agent(host).said(),
      second,
      ({ message, state }) => message === 'VRRP has changed its state' && state === 'backup',
    ),
  );
  return Math.min(...givesWay.map((time) => time ?? Number.POSITIVE_INFINITY)) - second;
}

async function churnRow(bench: Bench, rig: Rig): Promise<Row> {
  const { agents, vips: count } = rig;
  const changes = bench.scaled(CHANGES);
  const active = await agents.settled();
  bench.say(`vips-churn: ${changes} changes`);
  let { missed, transitions } = { missed: Number.NaN, transitions: Number.NaN };
  let ofVrrp = Number.NaN;
  const since = Date.now();
  const outage = await watched(rig.ask, async () => {
    const work = async (): Promise<void> => {
      ({ missed, transitions } = await churn(agents, active, { what: 'vips', count, changes }));
    };
    ofVrrp = await watched(rig.askHosts, work, HOST_PORT);
  });
  // On a busy machine HAProxy may be silent for so long at a reload that its host gives way, as it should.
  const lowered = HOSTS.flatMap((host) =>
    timesSaid(agents.agent(host).said(), since, ({ message }) => message.startsWith('This host is lowered')),
  );
  const few = bench.scaled(CHANGES / 4);
  bench.say(`vips-churn: ${few} changes of ports`);
  const ofPorts = await watched(rig.ask, async () => {
    await churn(agents, await agents.settled(), { what: 'ports', count, changes: few });
  });
  return row({
    name: 'vips-churn',
    value: ofVrrp,
    unit: 'ms',
    target: `≤ ${GAP} ms without an answer, of the host and through HAProxy, no change of master`,
    met: Math.max(ofVrrp, outage) <= GAP && transitions === 0,
    reference: { name: 'through HAProxy, which is reloaded at each change', value: outage },
    others: [{ name: 'ports that change instead: through HAProxy', value: ofPorts }],
    details: {
      changes,
      'advertisements missed': missed,
      'changes of master': transitions,
      'times a host was lowered': lowered.length,
      VIPs: count,
    },
  });
}
