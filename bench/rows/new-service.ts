// `new-service`: the time from the end of the write of a new Service and its EndpointSlice to the first answer, with 1,000
// Services × 10 endpoints. `new-service-sequence`: ten of them, each as soon as the one before answers. `new-gateway`: as
// `new-service`, of a Gateway with a route and its Service. Reference: a controller that renders, checks and reloads everything
// for a new Service, in turns.

import { GATEWAY_CLASS, gatewayOf, writeObjects } from '../support/gateway.ts';
import { nameOf, type ServiceSpec, services } from '../support/objects.ts';
import { untilAnswered } from '../support/request.ts';
import { type Benchmark, type Row, row } from '../support/row.ts';
import { withScratch } from '../support/scratch.ts';
import { median } from '../support/statistics.ts';
import { MEMBER_PORT, type Side, twoSides } from '../support/two-sides.ts';
import { pause } from '../support/until.ts';

/** Two of these are more than the longest time between two reloads, so that each Service has its own reload. */
const BETWEEN_MS = 2_700;
const MAX_P50_MS = 40;
const MAX_MS = 100;

export const newService: Benchmark = {
  rows: ['new-service', 'new-service-sequence', 'new-gateway'],
  run: (bench) =>
    withScratch(async (scratch) => {
      const { addresses, agent, reference } = await twoSides(bench, scratch, 'full-reload-process');
      await pause(BETWEEN_MS);
      let written = 0;
      const add = async (
        { port, specs, folder }: Side,
        write = (spec: ServiceSpec) => folder.write(spec),
      ): Promise<number> => {
        const [spec] = services(addresses, 1, 1, {
          port,
          memberPort: MEMBER_PORT,
          from: specs.length + written++,
        });
        if (spec === undefined) throw new Error('There is one specification');
        write(spec);
        return untilAnswered(spec.vip, port, spec.members[0]?.address ?? '', performance.now());
      };

      const samples = bench.scaled(10, 2);
      bench.report(`new-service: ${samples} Services each`);
      for (let n = -1; n < samples; n++) {
        for (const side of [agent, reference]) {
          const took = await add(side);
          if (n >= 0) side.samples.push(took);
          await pause(BETWEEN_MS);
        }
      }
      bench.report(`new-service-sequence: ${samples} Services each`);
      const sequences: number[][] = [];
      for (const side of [agent, reference]) {
        const sequence: number[] = [];
        for (let n = 0; n < samples; n++) sequence.push(await add(side));
        sequences.push(sequence);
        await pause(2 * BETWEEN_MS);
      }
      bench.report(`new-gateway: ${samples} Gateways`);
      const { path } = agent.folder;
      writeObjects(path, 'gateway-class', [GATEWAY_CLASS]);
      const gateways: number[] = [];
      for (let n = -1; n < samples; n++) {
        const took = await add(agent, (spec) => writeObjects(path, nameOf(spec), gatewayOf(spec)));
        if (n >= 0) gateways.push(took);
        await pause(BETWEEN_MS);
      }
      const [own = [], others = []] = sequences;
      bench.measured(
        rowOf('new-service', agent.samples, reference.samples),
        rowOf('new-service-sequence', own, others),
        rowOf('new-gateway', gateways, reference.samples),
      );
    }),
};

function rowOf(name: string, own: readonly number[], reference: readonly number[]): Row {
  const [p50, slowest] = [median([...own]), Math.max(...own)];
  return row({
    name,
    value: p50,
    unit: 'ms',
    target: `p50 ≤ ${MAX_P50_MS} ms, slowest ≤ ${MAX_MS} ms`,
    met: p50 <= MAX_P50_MS && slowest <= MAX_MS,
    reference: {
      name: 'controller that checks and reloads everything, p50',
      value: median([...reference]),
    },
    details: { fastest: Math.min(...own), slowest, samples: own.length },
  });
}
