// `cold-1k-api`, `cold-5k-api`: with a real API server that holds the objects, the time from the start of the process with
// an empty state directory until a member answers and all listeners exist. `rss-1k-api`, `rss-5k-api`: memory after some
// changes, at rest. References: the lower bound and kube-proxy, in turn on the same objects.

import { Prober } from '../api/prober.ts';
import { buildPrograms, Rig } from '../api/rig.ts';
import { Services } from '../api/services.ts';
import { STATUSES_MS, settled } from '../api/settled.ts';
import { type ColdSize, coldNames, coldRow, rssRow } from '../support/cold-rows.ts';
import { isolated } from '../support/isolated.ts';
import { beforeItsEnd, type Running } from '../support/processes.ts';
import type { Bench, Benchmark, Reference } from '../support/row.ts';
import { type Scratch, withScratch } from '../support/scratch.ts';
import { median } from '../support/statistics.ts';
import { pause, until } from '../support/until.ts';
import { listeningSockets, peakMemory, residentMemory } from '../support/usage.ts';

const PORT = 8080;
const NAMESPACE = 'bench';
/** For a contender to serve everything. */
const START_MS = 120_000;

const sizes: readonly ColdSize[] = [
  { suffix: '1k-api', count: 1_000, size: 10, runs: 5, cold: { most: 2, of: 'bound' }, rss: 150 },
  { suffix: '5k-api', count: 5_000, size: 20, runs: 2, cold: { most: 6, of: 'seconds' }, rss: 300 },
];

export const apiColdStart: Benchmark = {
  rows: sizes.flatMap(coldNames),
  run: async (bench, selected) => {
    await buildPrograms();
    return isolated(import.meta.url, bench, selected);
  },
};

export async function measure(bench: Bench, selected: ReadonlySet<string>): Promise<void> {
  for (const size of sizes) {
    const [cold, rss] = coldNames(size);
    if (!selected.has(cold) && !selected.has(rss)) continue;
    const runs = selected.has(cold) ? bench.scaled(size.runs) : 1;
    const measured = await withScratch((scratch) => measureSize(bench, scratch, size, runs));
    const { agent, bound, 'kube-proxy': kubeProxy } = measured;
    if (selected.has(cold))
      bench.measured(
        coldRow(size, agent.cold, bound.cold, {
          others: others(median(kubeProxy.cold)),
          details: { 'in a fresh cluster': agent.cold[0] ?? Number.NaN },
        }),
      );
    if (selected.has(rss)) bench.measured(rssRow(size, agent, bound.rss, { others: others(kubeProxy.rss) }));
  }
}

interface Measured {
  /** Seconds. */
  readonly cold: number[];
  /** MB in the first run. */
  rss: number;
  peak: number;
}

type Contender = 'agent' | 'bound' | 'kube-proxy';
type All = Readonly<Record<Contender, Measured>>;

async function measureSize(bench: Bench, scratch: Scratch, size: ColdSize, runs: number): Promise<All> {
  bench.report(`cold-${size.suffix}: starting and filling the API server`);
  const rig = await Rig.start(bench, scratch);
  const options = {
    namespace: NAMESPACE,
    servedBy: ['agent', 'bound', 'kube-proxy'],
    port: PORT,
    network: 20,
  };
  const services = new Services(rig.kube, options as ConstructorParameters<typeof Services>[1]);
  // The first Service has one member, whose answer shows the end of the start.
  await services.fill(bench.scaled(size.count, 5), (index) => (index === 0 ? 1 : size.size));
  const prober = new Prober(scratch, 'own');
  const all = Object.fromEntries(
    ['agent', 'bound', 'kube-proxy'].map((name) => [name, { cold: [], rss: Number.NaN, peak: Number.NaN }]),
  ) as unknown as All;
  for (let run = 1; run <= runs; run++) {
    bench.report(`cold-${size.suffix}: run ${run} of ${runs}`);
    const listeners = async (): Promise<void> => {
      const { address, members } = services.at(0);
      await prober.answered(address, PORT, members[0] ?? '', { most: START_MS });
      const isThere = (): boolean => listeningSockets(PORT, vipsOf(services)) >= services.all.length;
      await until('All listeners exist', isThere, { most: START_MS });
    };
    const name = `${size.suffix}-${run}`;
    const isFirst = run === 1;
    await withScratch((own) =>
      once(bench, services, all.agent, isFirst, () => rig.startAgent(own, `a${name}`, NAMESPACE), listeners),
    );
    await withScratch((own) =>
      once(bench, services, all.bound, isFirst, () => rig.startBound(own, `b${name}`, NAMESPACE), listeners),
    );
    try {
      await withScratch(async (own) => {
        const network = await rig.networkOfKubeProxy(own);
        const clusterIPs = async (): Promise<void> => {
          for (const { clusterIP, members } of [services.at(0)])
            await network.prober.answered(clusterIP, PORT, members[0] ?? '', { most: START_MS });
        };
        await once(bench, services, all['kube-proxy'], isFirst, network.start, clusterIPs);
      });
    } catch (error) {
      bench.report(`kube-proxy does not serve on this machine and has no value: ${(error as Error).message}`);
    }
  }
  return all;
}

function vipsOf(services: Services): string[] {
  return services.all.map(({ address }) => address);
}

async function once(
  bench: Bench,
  services: Services,
  measured: Measured,
  withMemory: boolean,
  start: () => Running,
  serves: () => Promise<void>,
): Promise<void> {
  await until('The ports are free', () => listeningSockets(PORT, vipsOf(services)) === 0, { most: START_MS });
  const began = performance.now();
  const running = start();
  await beforeItsEnd(running, serves());
  measured.cold.push((performance.now() - began) / 1_000);
  if (!withMemory) return;
  await settled(running, STATUSES_MS);
  for (let n = 0; n < bench.scaled(200, 3); n++) {
    await services.write(services.replaced(services.at(1 + (n % (services.all.length - 1)))));
    await pause(20);
  }
  await settled(running);
  measured.rss = residentMemory(running.pid);
  measured.peak = peakMemory(running.pid);
}

function others(ofKubeProxy: number): readonly Reference[] {
  return Number.isNaN(ofKubeProxy) ? [] : [{ name: 'kube-proxy', value: ofKubeProxy }];
}
