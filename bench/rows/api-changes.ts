// `write-to-traffic`, `write-to-traffic-churn`, `new-service-api`, `cpu-per-change-api`, `idle-api`: all with a real
// API server that holds 1,000 Services × 10 endpoints for each contender. Beside the agent: the bound, kube-proxy in a
// network of its own, and an agent and a bound with one Service each. They take turns; nobody sees the others' changes.

import { type Churned, Contender } from '../api/contender.ts';
import { Prober } from '../api/prober.ts';
import { buildPrograms, Rig } from '../api/rig.ts';
import { Services, type ServicesOptions } from '../api/services.ts';
import { STATUSES, settled } from '../api/settled.ts';
import { serving } from '../support/agent.ts';
import { costs } from '../support/cost.ts';
import { isolated } from '../support/isolated.ts';
import { type Bench, type Benchmark, type Reference, type Row, row } from '../support/row.ts';
import { type Scratch, withScratch } from '../support/scratch.ts';
import { median, percentile, sum } from '../support/statistics.ts';
import { pause } from '../support/until.ts';
import { processorTime, processTree } from '../support/usage.ts';

/** Services with one member, so that an answer tells of a change; all others have ten. */
const PROBED = 40;
/** Of `write-to-traffic`: of fewer than a hundred the p99 would be the slowest one. */
const SAMPLES = 120;
/** Milliseconds between isolated changes of different contenders, and of kube-proxy's own. */
const BETWEEN = 300;
const BETWEEN_OWN = 1_000;
/** Milliseconds: more than the most time between two reloads, so that each new Service comes by itself. */
const BETWEEN_RELOADS = 5_300;
const ROUNDS = 3;
/**
 * Changes of the churn in one round: 24 s for the agent and the bound, most of whose reloads are those of a churn that
 * goes on and on, which the first two are not; 8 s for the others.
 */
const CHURN = 300;
const CHURN_OF_OTHERS = 100;
/** As in cpu-per-change.ts. */
const WARM = 4_000;
const BETWEEN_CHANGES = 80;
const BETWEEN_WARMING = 5;
/** Milliseconds; an audit comes every 30 s, and so once in each such stretch. */
const IDLE = 31_000;

export const apiChanges: Benchmark = {
  rows: ['write-to-traffic', 'write-to-traffic-churn', 'new-service-api', 'cpu-per-change-api', 'idle-api'],
  run: async (bench, wanted) => {
    await buildPrograms();
    return isolated(import.meta.url, bench, wanted);
  },
};

interface Contenders {
  readonly agent: Contender;
  readonly bound: Contender;
  readonly agentOfOne: Contender;
  readonly boundOfOne: Contender;
  /** undefined where it does not serve on this machine. */
  readonly kubeProxy: Contender | undefined;
  /** HAProxy's processes. */
  readonly haproxyOf: (contender: Contender) => readonly number[];
}

export function measure(bench: Bench, wanted: ReadonlySet<string>): Promise<readonly Row[]> {
  return withScratch(async (scratch) => {
    bench.say('api: starting the API server, filling it');
    const rig = await Rig.start(bench, scratch);
    const contenders = await prepare(bench, scratch, rig);
    const rows: Row[] = [];
    if (wanted.has('idle-api')) rows.push(await idle(bench, contenders));
    stopTurn(contenders.kubeProxy);
    if (wanted.has('write-to-traffic')) rows.push(await isolatedChanges(bench, contenders));
    if (wanted.has('write-to-traffic-churn')) rows.push(await churn(bench, contenders));
    if (wanted.has('new-service-api')) rows.push(await newServices(bench, contenders));
    if (wanted.has('cpu-per-change-api')) rows.push(await cpuPerChange(bench, contenders));
    return rows;
  });
}

async function prepare(bench: Bench, scratch: Scratch, rig: Rig): Promise<Contenders> {
  const many = bench.scaled(1_000, 5);
  const haproxies = new Map<Contender, () => readonly number[]>();
  const prober = new Prober(scratch, 'own');
  const filled = async (count: number, options: ServicesOptions): Promise<Services> => {
    const services = new Services(rig.kube, options);
    await services.fill(count, (index) => (index < PROBED ? 1 : 10));
    return services;
  };
  const withAgent = async (namespace: string, count: number, port: number, network: number) => {
    const services = await filled(count, { namespace, servedBy: ['agent'], port, network });
    const running = rig.startAgent(scratch, namespace, namespace);
    await serving(running, count);
    const agent = new Contender({ services, running, prober, probed: Math.min(count, PROBED) });
    haproxies.set(agent, running.haproxyPids);
    return agent;
  };
  const withBound = async (namespace: string, count: number, port: number, network: number) => {
    const services = await filled(count, { namespace, servedBy: ['bound'], port, network });
    const running = rig.startBound(scratch, namespace, namespace);
    const { pids } = await running.ask<{ readonly pids: readonly number[] }>({});
    const probed = Math.min(count, PROBED);
    const bound = new Contender({ services, running, prober, probed, endpointsOnly: true });
    haproxies.set(bound, () => pids.flatMap(processTree));
    return bound;
  };
  const contenders = {
    agent: await withAgent('agent', many, 8080, 20),
    bound: await withBound('bound', many, 8081, 21),
    agentOfOne: await withAgent('agent-of-one', 1, 8082, 22),
    boundOfOne: await withBound('bound-of-one', 1, 8083, 23),
  };
  const servedBy = ['kube-proxy'] as const;
  const services = await filled(many, { namespace: 'kube-proxy', servedBy, port: 8084, network: 24 });
  for (const contender of Object.values(contenders)) {
    await contender.served();
    await settled(contender.running, STATUSES);
  }
  return {
    ...contenders,
    kubeProxy: await kubeProxyOf(bench, scratch, rig, services),
    haproxyOf: (contender) => haproxies.get(contender)?.() ?? [],
  };
}

async function kubeProxyOf(
  bench: Bench,
  scratch: Scratch,
  rig: Rig,
  services: Services,
): Promise<Contender | undefined> {
  try {
    const { prober, start } = await rig.networkOfKubeProxy(scratch);
    const running = start();
    // One that is stopped does not end.
    scratch.defer(() => void running.child.kill('SIGCONT'));
    const probed = Math.min(services.all.length, PROBED);
    const contender = new Contender({ services, running, prober, probed, servedAt: 'clusterIP' });
    await contender.served();
    await settled(running);
    return contender;
  } catch (error) {
    bench.say(`kube-proxy is left out, it does not serve here: ${(error as Error).message}`);
    return undefined;
  }
}

/** kube-proxy sees changes of the others' Services as well, and rests while it is not its turn. */
function stopTurn(contender: Contender | undefined): void {
  contender?.running.child.kill('SIGSTOP');
}

async function takeTurn<T>(contender: Contender, work: () => Promise<T>): Promise<T> {
  contender.running.child.kill('SIGCONT');
  await pause(BETWEEN_OWN);
  await settled(contender.running);
  try {
    return await work();
  } finally {
    stopTurn(contender);
  }
}

async function isolatedChanges(bench: Bench, contenders: Contenders): Promise<Row> {
  const { agent, bound, agentOfOne, boundOfOne, kubeProxy } = contenders;
  const samples = bench.scaled(SAMPLES, 3);
  bench.say(`write-to-traffic: ${samples} changes each`);
  const took = new Map<Contender, number[]>();
  const take = async (contender: Contender, n: number, between: number): Promise<void> => {
    const milliseconds = await contender.replaceEndpoint();
    // The first ones are for practice.
    if (n >= 0) took.set(contender, [...(took.get(contender) ?? []), milliseconds]);
    await pause(between);
  };
  for (let n = -3; n < samples; n++) {
    for (const contender of [agent, bound, agentOfOne, boundOfOne]) await take(contender, n, BETWEEN);
  }
  if (kubeProxy !== undefined) {
    await takeTurn(kubeProxy, async () => {
      for (let n = -1; n < bench.scaled(20, 3); n++) await take(kubeProxy, n, BETWEEN_OWN);
    });
  }
  return writeToTraffic('write-to-traffic', contenders, (contender) => took.get(contender) ?? []);
}

async function churn(bench: Bench, contenders: Contenders): Promise<Row> {
  const { agent, bound, agentOfOne, boundOfOne, kubeProxy } = contenders;
  const took = new Map<Contender, Churned>();
  const take = async (contender: Contender): Promise<void> => {
    const isLong = contender === agent || contender === bound;
    const changes = bench.scaled(isLong ? CHURN : CHURN_OF_OTHERS, 20);
    const { endpoints, newServices } = await contender.churn(changes);
    const before = took.get(contender) ?? { endpoints: [], newServices: [] };
    took.set(contender, {
      endpoints: [...before.endpoints, ...endpoints],
      newServices: [...before.newServices, ...newServices],
    });
  };
  bench.say('write-to-traffic-churn: for practice');
  for (const contender of [agent, bound]) await take(contender);
  took.clear();
  for (let round = 1; round <= ROUNDS; round++) {
    bench.say(`write-to-traffic-churn: round ${round} of ${ROUNDS}`);
    for (const contender of [agent, bound, agentOfOne, boundOfOne]) await take(contender);
    if (kubeProxy !== undefined) await takeTurn(kubeProxy, () => take(kubeProxy));
  }
  const newOnes = median(took.get(agent)?.newServices ?? []);
  return writeToTraffic(
    'write-to-traffic-churn',
    contenders,
    (contender) => took.get(contender)?.endpoints ?? [],
    { 'new Services in the churn, p50': newOnes },
  );
}

function writeToTraffic(
  name: string,
  { agent, bound, agentOfOne, boundOfOne, kubeProxy }: Contenders,
  tookBy: (contender: Contender) => readonly number[],
  more: Readonly<Record<string, number>> = {},
): Row {
  const [own, its, one] = [tookBy(agent), median(tookBy(bound)), median(tookBy(agentOfOne))];
  const [p50, p99] = [median(own), percentile(own, 0.99)];
  const others: Reference[] = [
    { name: 'the bound, p99', value: percentile(tookBy(bound), 0.99) },
    { name: 'the agent with one Service, p50', value: one },
    { name: 'the agent with one Service, p99', value: percentile(tookBy(agentOfOne), 0.99) },
    { name: 'the bound with one Service, p50', value: median(tookBy(boundOfOne)) },
  ];
  if (kubeProxy !== undefined) {
    const milliseconds = tookBy(kubeProxy);
    others.push({ name: 'kube-proxy, p50', value: median(milliseconds) });
    others.push({ name: 'kube-proxy, p99', value: percentile(milliseconds, 0.99) });
  }
  return row({
    name,
    value: p50,
    unit: 'ms',
    target: 'p50 ≤ 2 × the bound, p99 ≤ 10 ms; p50 ≤ 1.3 × with one Service',
    met: p50 <= 2 * its && p99 <= 10 && p50 <= 1.3 * one,
    reference: { name: 'the bound, p50', value: its },
    others,
    details: { p99, '× with one Service': p50 / one, samples: own.length, ...more },
  });
}

async function newServices(bench: Bench, { agent, kubeProxy }: Contenders): Promise<Row> {
  const samples = bench.scaled(10, 2);
  bench.say(`new-service-api: ${samples} Services each`);
  const take = async (contender: Contender): Promise<number[]> => {
    const took: number[] = [];
    const before = contender.services.all.length;
    for (let n = -1; n < samples; n++) {
      const milliseconds = await contender.addService();
      if (n >= 0) took.push(milliseconds);
      await pause(BETWEEN_RELOADS);
    }
    await contender.services.removeFrom(before);
    return took;
  };
  const own = await take(agent);
  const its = kubeProxy === undefined ? [] : await takeTurn(kubeProxy, () => take(kubeProxy));
  const p50 = median(own);
  return row({
    name: 'new-service-api',
    value: p50,
    unit: 'ms',
    target: 'p50 ≤ 250 ms with a reload',
    met: p50 <= 250,
    reference: { name: 'kube-proxy, p50', value: median(its) },
    details: { fastest: Math.min(...own), slowest: Math.max(...own), samples: own.length },
  });
}

async function cpuPerChange(bench: Bench, { agent, bound, kubeProxy }: Contenders): Promise<Row> {
  const changes = bench.scaled(240, 3);
  await pause(BETWEEN_RELOADS);
  bench.say('cpu-per-change-api: before it is warm, warming up');
  const before = await agent.cost(changes);
  const warming = bench.scaled(WARM, 3);
  await Promise.all([agent.cost(warming, BETWEEN_WARMING), bound.cost(warming, BETWEEN_WARMING)]);
  bench.say(`cpu-per-change-api: ${ROUNDS} rounds`);
  const options = { changes, between: BETWEEN_CHANGES, stretch: bench.scaled(IDLE, 500) };
  const [ours, theBounds] = await costs([agent, bound], { ...options, rounds: ROUNDS });
  if (ours === undefined || theBounds === undefined) throw new Error('There are two sides');
  const proxys =
    kubeProxy === undefined
      ? []
      : await takeTurn(kubeProxy, () => costs([kubeProxy], { ...options, rounds: 1 }));
  const value = ours.median;
  return row({
    name: 'cpu-per-change-api',
    value,
    unit: 'ms',
    target: '≤ 2.5 ms',
    met: value <= 2.5,
    reference: { name: 'the bound', value: theBounds.median },
    others: [
      { name: 'with all that the agent does meanwhile', value: ours.everything },
      { name: '240 changes before it is warm', value: before },
      ...proxys.map((cost) => ({ name: 'kube-proxy', value: cost.median })),
    ],
    details: {
      least: Math.min(...ours.rounds),
      most: Math.max(...ours.rounds),
      changes: changes * ROUNDS,
      'changes before': warming,
    },
  });
}

/** All at the same time. */
async function idle(bench: Bench, { agent, bound, kubeProxy, haproxyOf }: Contenders): Promise<Row> {
  bench.say(`idle-api: ${IDLE / 1_000} s`);
  const all = [agent, bound, ...(kubeProxy === undefined ? [] : [kubeProxy])];
  const pids = all.map((contender) => [[contender.running.pid], haproxyOf(contender)]);
  const times = (): number[][] => pids.map((kinds) => kinds.map((each) => sum(each.map(processorTime))));
  const [began, before] = [performance.now(), times()];
  await pause(bench.scaled(IDLE, 500));
  const took = performance.now() - began;
  const shares = times().map((kinds, at) =>
    kinds.map((time, kind) => ((time - (before[at]?.[kind] ?? 0)) / took) * 100),
  );
  const [own = [], its = [], proxys] = shares;
  const value = sum(own);
  return row({
    name: 'idle-api',
    value,
    unit: '% of a core',
    target: '≤ 1 % of a core',
    met: value <= 1,
    reference: { name: 'the bound and its HAProxy', value: sum(its) },
    others: proxys === undefined ? [] : [{ name: 'kube-proxy', value: sum(proxys) }],
    details: { agent: own[0] ?? 0, HAProxy: own[1] ?? 0, seconds: took / 1_000 },
  });
}
