// `kernel-write-to-traffic`: as `write-to-traffic`, for ports of the kernel path: from the return of a Kubernetes write to the
// first answer of the new pod. Reference: each event of the watch directly to `nft -i`. Both are in a network of their own,
// where every packet goes through the rules of both.

import { Contender } from '../api/contender.ts';
import { buildPrograms, Rig } from '../api/rig.ts';
import { Services, type ServicesOptions } from '../api/services.ts';
import { STATUSES_MS, settled } from '../api/settled.ts';
import { isolated } from '../support/isolated.ts';
import { type Bench, type Benchmark, row } from '../support/row.ts';
import { withScratch } from '../support/scratch.ts';
import { median, percentile } from '../support/statistics.ts';
import { pause } from '../support/until.ts';

/** Services with one member, so that its answer shows a change; all others have ten. */
const PROBED = 40;
/** With fewer than a hundred the p99 would be the slowest one. */
const SAMPLES = 120;
const BETWEEN_MS = 300;

export const kernelApi: Benchmark = {
  rows: ['kernel-write-to-traffic'],
  run: async (bench, selected) => {
    await buildPrograms();
    return isolated(import.meta.url, bench, selected);
  },
};

export function measure(bench: Bench): Promise<void> {
  return withScratch(async (scratch) => {
    bench.report('kernel-write-to-traffic: starting and filling the API server');
    const rig = await Rig.start(bench, scratch);
    const network = await rig.networkOfKernel(scratch);
    const count = bench.scaled(1_000, 5);
    const filled = async (options: ServicesOptions): Promise<Services> => {
      const services = new Services(rig.kube, options);
      await services.fill(count, (index) => (index < PROBED ? 1 : 10));
      return services;
    };
    const common = { prober: network.prober, probed: Math.min(count, PROBED) };
    const ofAgent = { namespace: 'kernel-agent', port: 8086, network: 26, engine: 'kernel' } as const;
    const agent = new Contender({
      ...common,
      services: await filled({ ...ofAgent, servedBy: ['agent'] }),
      running: network.startAgent(ofAgent.namespace),
    });
    const ofBound = { namespace: 'kernel-bound', port: 8087, network: 27 } as const;
    const bound = new Contender({
      ...common,
      services: await filled({ ...ofBound, servedBy: ['bound'] }),
      running: network.startBound(ofBound.namespace),
      endpointsOnly: true,
    });
    for (const contender of [agent, bound]) {
      await contender.served();
      await settled(contender.running, STATUSES_MS);
    }
    const samples = bench.scaled(SAMPLES, 3);
    bench.report(`kernel-write-to-traffic: ${samples} changes each`);
    const took = new Map<Contender, number[]>([
      [agent, []],
      [bound, []],
    ]);
    for (let n = -3; n < samples; n++)
      for (const [contender, all] of took) {
        const milliseconds = await contender.replaceEndpoint();
        // The first changes warm up and do not count.
        if (n >= 0) all.push(milliseconds);
        await pause(BETWEEN_MS);
      }
    const [byAgent, byBound] = [took.get(agent) ?? [], took.get(bound) ?? []];
    const [p50, boundP50] = [median([...byAgent]), median([...byBound])];
    bench.measured(
      row({
        name: 'kernel-write-to-traffic',
        value: p50,
        unit: 'ms',
        target: 'p50 ≤ 2 × the lower bound',
        met: p50 <= 2 * boundP50,
        reference: { name: 'lower bound, p50', value: boundP50 },
        others: [{ name: 'lower bound, p99', value: percentile([...byBound], 0.99) }],
        details: { p99: percentile([...byAgent], 0.99), samples: byAgent.length },
      }),
    );
  });
}
