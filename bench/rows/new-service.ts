// `new-service`: the time from the end of the write of a new Service and its EndpointSlice to the first answer, with 1,000
// Services × 10 endpoints and one reload. Reference: a controller that renders, checks and reloads everything, in turns.

import { services } from '../support/objects.ts';
import { untilAnswered } from '../support/request.ts';
import { type Benchmark, row } from '../support/row.ts';
import { withScratch } from '../support/scratch.ts';
import { median } from '../support/statistics.ts';
import { MEMBER_PORT, twoSides } from '../support/two-sides.ts';
import { pause } from '../support/until.ts';

/** Two of these are more than the longest time between two reloads, so that each Service has its own reload. */
const BETWEEN_MS = 2_700;

export const newService: Benchmark = {
  rows: ['new-service'],
  run: (bench) =>
    withScratch(async (scratch) => {
      const { addresses, agent, reference } = await twoSides(bench, scratch, 'full-reload-process');
      await pause(BETWEEN_MS);

      const samples = bench.scaled(10, 2);
      bench.report(`new-service: ${samples} Services each`);
      for (let n = -1; n < samples; n++) {
        for (const { port, specs, folder, samples } of [agent, reference]) {
          const [spec] = services(addresses, 1, 1, {
            port,
            memberPort: MEMBER_PORT,
            from: specs.length + n + 1,
          });
          if (spec === undefined) continue;
          folder.write(spec);
          const took = await untilAnswered(spec.vip, port, spec.members[0]?.address ?? '', performance.now());
          if (n >= 0) samples.push(took);
          await pause(BETWEEN_MS);
        }
      }
      const p50 = median(agent.samples);
      return [
        row({
          name: 'new-service',
          value: p50,
          unit: 'ms',
          target: 'p50 ≤ 250 ms with a reload',
          met: p50 <= 250,
          reference: {
            name: 'controller that checks and reloads everything, p50',
            value: median(reference.samples),
          },
          details: {
            fastest: Math.min(...agent.samples),
            slowest: Math.max(...agent.samples),
            samples: agent.samples.length,
          },
        }),
      ];
    }),
};
