// `new-service`: a Service and its slice are written; from the moment the write has returned to the first request
// answered, with 1,000 Services × 10 endpoints present. Needs one reload. Beside it a controller that renders, checks
// and reloads everything; the two take turns.

import { services } from '../support/objects.ts';
import { untilAnswered } from '../support/request.ts';
import { type Benchmark, row } from '../support/row.ts';
import { withScratch } from '../support/scratch.ts';
import { median } from '../support/statistics.ts';
import { MEMBER_PORT, twoSides } from '../support/two-sides.ts';
import { pause } from '../support/until.ts';

/** Milliseconds: two of them are more than the most time between two reloads, so that each Service comes by itself. */
const BETWEEN = 2_700;

export const newService: Benchmark = {
  rows: ['new-service'],
  run: (bench) =>
    withScratch(async (scratch) => {
      const { addresses, own, its } = await twoSides(bench, scratch, 'full-reload-process');
      await pause(BETWEEN);

      const samples = bench.scaled(10, 2);
      bench.say(`new-service: ${samples} Services each`);
      for (let n = -1; n < samples; n++) {
        for (const { port, specs, folder, samples } of [own, its]) {
          const [spec] = services(addresses, 1, 1, {
            port,
            memberPort: MEMBER_PORT,
            from: specs.length + n + 1,
          });
          if (spec === undefined) continue;
          folder.write(spec);
          const took = await untilAnswered(spec.vip, port, spec.members[0]?.address ?? '', performance.now());
          if (n >= 0) samples.push(took);
          await pause(BETWEEN);
        }
      }
      const p50 = median(own.samples);
      return [
        row({
          name: 'new-service',
          value: p50,
          unit: 'ms',
          target: 'p50 ≤ 250 ms with a reload',
          met: p50 <= 250,
          reference: {
            name: 'a controller that checks and reloads everything, p50',
            value: median(its.samples),
          },
          details: {
            fastest: Math.min(...own.samples),
            slowest: Math.max(...own.samples),
            samples: own.samples.length,
          },
        }),
      ];
    }),
};
