// `write-to-traffic`, `write-to-traffic-churn`, `new-service-api`, `cpu-per-change-api`, `idle-api`: all with a real
// API server that holds 1,000 Services × 10 endpoints for each contender. References: the lower bound, kube-proxy in its
// own network, and an agent and a lower bound with one Service each. They take turns, each in its own namespace.

import { type Churned, Contender } from '../api/contender.ts';
import { Prober } from '../api/prober.ts';
import { buildPrograms, Rig } from '../api/rig.ts';
import { Services, type ServicesOptions } from '../api/services.ts';
import { STATUSES_MS, settled } from '../api/settled.ts';
import { serving } from '../support/agent.ts';
import { costs } from '../support/cost.ts';
import { isolated } from '../support/isolated.ts';
import { type Bench, type Benchmark, type Reference, type Row, row } from '../support/row.ts';
import { type Scratch, withScratch } from '../support/scratch.ts';
import { median, percentile, sum } from '../support/statistics.ts';
import { pause } from '../support/until.ts';
import { processorTime, processTree } from '../support/usage.ts';

/** Services with one member, so that its answer shows a change; all others have ten. */
const PROBED = 40;
/** Changes of `write-to-traffic`: with fewer than a hundred the p99 would be the slowest one. */
const SAMPLES = 120;
/** Between changes of different contenders, and between two changes of kube-proxy. */
const BETWEEN_MS = 300;
const BETWEEN_OWN_MS = 1_000;
/** More than the longest time between two reloads, so that each new Service has its own reload. */
const BETWEEN_RELOADS_MS = 5_300;
const ROUNDS = 3;
/**
 * Changes of the churn in one round: 24 s for the agent and the lower bound, so that most reloads are those of a steady
 * churn, which the first two are not; 8 s for the others.
 */
const CHURN = 300;
const CHURN_OF_OTHERS = 100;
/** As in cpu-per-change.ts. */
const WARM_CHANGES = 4_000;
const BETWEEN_CHANGES_MS = 80;
const BETWEEN_WARMING_MS = 5;
/** An audit runs every 30 s, and so once in each such period. */
const IDLE_MS = 31_000;

export const apiChanges: Benchmark = {
  rows: ['write-to-traffic', 'write-to-traffic-churn', 'new-service-api', 'cpu-per-change-api', 'idle-api'],
  run: async (bench, selected) => {
    await buildPrograms();
    return isolated(import.meta.url, bench, selected);
  },
};

interface Contenders {
  readonly agent: Contender;
  readonly bound: Contender;
  readonly agentOfOne: Contender;
  readonly boundOfOne: Contender;
  /** undefined if kube-proxy does not serve on this machine. */
  readonly kubeProxy: Contender | undefined;
  /** The processes of the contender's HAProxy. */
  readonly haproxyOf: (contender: Contender) => readonly number[];
}

export function measure(bench: Bench, selected: ReadonlySet<string>): Promise<void> {
  return withScratch(async (scratch) => {
    bench.report('api: starting and filling the API server');
    const rig = await Rig.start(bench, scratch);
    const contenders = await prepare(bench, scratch, rig);
    if (selected.has('idle-api')) bench.measured(await idle(bench, contenders));
    stopTurn(contenders.kubeProxy);
    if (selected.has('write-to-traffic')) bench.measured(await isolatedChanges(bench, contenders));
    if (selected.has('write-to-traffic-churn')) bench.measured(await churn(bench, contenders));
    if (selected.has('new-service-api')) bench.measured(await newServices(bench, contenders));
    if (selected.has('cpu-per-change-api')) bench.measured(await cpuPerChange(bench, contenders));
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
    await settled(contender.running, STATUSES_MS);
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
    // A stopped process does not end.
    scratch.defer(() => void running.child.kill('SIGCONT'));
    const probed = Math.min(services.all.length, PROBED);
    const contender = new Contender({ services, running, prober, probed, servedAt: 'clusterIP' });
    await contender.served();
    await settled(running);
    return contender;
  } catch (error) {
    bench.report(`kube-proxy does not serve on this machine and has no value: ${(error as Error).message}`);
    return undefined;
  }
}

/** kube-proxy watches the Services of all namespaces, so it is stopped while it is not its turn. */
function stopTurn(contender: Contender | undefined): void {
  contender?.running.child.kill('SIGSTOP');
}

async function takeTurn<T>(contender: Contender, work: () => Promise<T>): Promise<T> {
  contender.running.child.kill('SIGCONT');
  await pause(BETWEEN_OWN_MS);
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
  bench.report(`write-to-traffic: ${samples} changes each`);
  const took = new Map<Contender, number[]>();
  const take = async (contender: Contender, n: number, between: number): Promise<void> => {
    const milliseconds = await contender.replaceEndpoint();
    // The first changes warm up and do not count.
    if (n >= 0) took.set(contender, [...(took.get(contender) ?? []), milliseconds]);
    await pause(between);
  };
  for (let n = -3; n < samples; n++) {
    for (const contender of [agent, bound, agentOfOne, boundOfOne]) await take(contender, n, BETWEEN_MS);
  }
  if (kubeProxy !== undefined) {
    await takeTurn(kubeProxy, async () => {
      for (let n = -1; n < bench.scaled(20, 3); n++) await take(kubeProxy, n, BETWEEN_OWN_MS);
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
  bench.report('write-to-traffic-churn: warming up');
  for (const contender of [agent, bound]) await take(contender);
  took.clear();
  for (let round = 1; round <= ROUNDS; round++) {
    bench.report(`write-to-traffic-churn: round ${round} of ${ROUNDS}`);
    for (const contender of [agent, bound, agentOfOne, boundOfOne]) await take(contender);
    if (kubeProxy !== undefined) await takeTurn(kubeProxy, () => take(kubeProxy));
  }
  const newOnes = median(took.get(agent)?.newServices ?? []);
  return writeToTraffic(
    'write-to-traffic-churn',
    contenders,
    (contender) => took.get(contender)?.endpoints ?? [],
    { 'new Services during the churn, p50': newOnes },
  );
}

function writeToTraffic(
  name: string,
  { agent, bound, agentOfOne, boundOfOne, kubeProxy }: Contenders,
  tookBy: (contender: Contender) => readonly number[],
  more: Readonly<Record<string, number>> = {},
): Row {
  const [byAgent, byBound, withOne] = [tookBy(agent), median(tookBy(bound)), median(tookBy(agentOfOne))];
  const [p50, p99] = [median(byAgent), percentile(byAgent, 0.99)];
  const others: Reference[] = [
    { name: 'lower bound, p99', value: percentile(tookBy(bound), 0.99) },
    { name: 'agent with one Service, p50', value: withOne },
    { name: 'agent with one Service, p99', value: percentile(tookBy(agentOfOne), 0.99) },
    { name: 'lower bound with one Service, p50', value: median(tookBy(boundOfOne)) },
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
    target: 'p50 ≤ 2 × the lower bound, p99 ≤ 10 ms; p50 ≤ 1.3 × with one Service',
    met: p50 <= 2 * byBound && p99 <= 10 && p50 <= 1.3 * withOne,
    reference: { name: 'lower bound, p50', value: byBound },
    others,
    details: { p99, '× with one Service': p50 / withOne, samples: byAgent.length, ...more },
  });
}

async function newServices(bench: Bench, { agent, kubeProxy }: Contenders): Promise<Row> {
  const samples = bench.scaled(10, 2);
  bench.report(`new-service-api: ${samples} Services each`);
  const take = async (contender: Contender): Promise<number[]> => {
    const took: number[] = [];
    const before = contender.services.all.length;
    for (let n = -1; n < samples; n++) {
      const milliseconds = await contender.addService();
      if (n >= 0) took.push(milliseconds);
      await pause(BETWEEN_RELOADS_MS);
    }
    await contender.services.removeFrom(before);
    return took;
  };
  const byAgent = await take(agent);
  const byKubeProxy = kubeProxy === undefined ? [] : await takeTurn(kubeProxy, () => take(kubeProxy));
  const p50 = median(byAgent);
  return row({
    name: 'new-service-api',
    value: p50,
    unit: 'ms',
    target: 'p50 ≤ 40 ms',
    met: p50 <= 40,
    reference: { name: 'kube-proxy, p50', value: median(byKubeProxy) },
    details: { fastest: Math.min(...byAgent), slowest: Math.max(...byAgent), samples: byAgent.length },
  });
}

async function cpuPerChange(bench: Bench, { agent, bound, kubeProxy }: Contenders): Promise<Row> {
  const changes = bench.scaled(240, 3);
  await pause(BETWEEN_RELOADS_MS);
  bench.report('cpu-per-change-api: first changes, then warming up');
  const before = await agent.cost(changes);
  const warming = bench.scaled(WARM_CHANGES, 3);
  await Promise.all([agent.cost(warming, BETWEEN_WARMING_MS), bound.cost(warming, BETWEEN_WARMING_MS)]);
  bench.report(`cpu-per-change-api: ${ROUNDS} rounds`);
  const options = { changes, betweenMs: BETWEEN_CHANGES_MS, turnMs: bench.scaled(IDLE_MS, 500) };
  const [ofAgent, ofBound] = await costs([agent, bound], { ...options, rounds: ROUNDS });
  if (ofAgent === undefined || ofBound === undefined) throw new Error('A side has no cost');
  const ofKubeProxy =
    kubeProxy === undefined
      ? []
      : await takeTurn(kubeProxy, () => costs([kubeProxy], { ...options, rounds: 1 }));
  const value = ofAgent.median;
  return row({
    name: 'cpu-per-change-api',
    value,
    unit: 'ms',
    target: '≤ 2 ms',
    met: value <= 2,
    reference: { name: 'lower bound', value: ofBound.median },
    others: [
      { name: 'with all other work of the agent', value: ofAgent.everything },
      { name: '240 changes before the agent is warm', value: before },
      ...ofKubeProxy.map((cost) => ({ name: 'kube-proxy', value: cost.median })),
    ],
    details: {
      least: Math.min(...ofAgent.rounds),
      most: Math.max(...ofAgent.rounds),
      changes: changes * ROUNDS,
      'changes to warm up': warming,
    },
  });
}

/** Measures all contenders at the same time. */
async function idle(bench: Bench, { agent, bound, kubeProxy, haproxyOf }: Contenders): Promise<Row> {
  bench.report(`idle-api: ${IDLE_MS / 1_000} s`);
  const all = [agent, bound, ...(kubeProxy === undefined ? [] : [kubeProxy])];
  const pids = all.map((contender) => [[contender.running.pid], haproxyOf(contender)]);
  const times = (): number[][] => pids.map((kinds) => kinds.map((each) => sum(each.map(processorTime))));
  const [began, before] = [performance.now(), times()];
  await pause(bench.scaled(IDLE_MS, 500));
  const took = performance.now() - began;
  const shares = times().map((kinds, at) =>
    kinds.map((time, kind) => ((time - (before[at]?.[kind] ?? 0)) / took) * 100),
  );
  const [ofAgent = [], ofBound = [], ofKubeProxy] = shares;
  const value = sum(ofAgent);
  return row({
    name: 'idle-api',
    value,
    unit: '% of a core',
    target: '≤ 1 % of a core',
    met: value <= 1,
    reference: { name: 'lower bound and its HAProxy', value: sum(ofBound) },
    others: ofKubeProxy === undefined ? [] : [{ name: 'kube-proxy', value: sum(ofKubeProxy) }],
    details: { agent: ofAgent[0] ?? 0, HAProxy: ofAgent[1] ?? 0, seconds: took / 1_000 },
  });
}
