// `edit-to-traffic`: a Service's only endpoint is replaced; from the moment the write of the manifest has returned to
// the first answer of the new member, with 1,000 Services × 10 endpoints present and nothing else going on. Beside it
// the bound on manifests of the same size; the two take turns.

import { untilAnswered } from '../support/request.ts';
import { type Benchmark, row } from '../support/row.ts';
import { withScratch } from '../support/scratch.ts';
import { median, percentile } from '../support/statistics.ts';
import { MEMBER_PORT, twoSides } from '../support/two-sides.ts';
import { pause } from '../support/until.ts';

/** Milliseconds between changes: time enough for what follows from one. */
const BETWEEN = 450;

export const editToTraffic: Benchmark = {
  rows: ['edit-to-traffic'],
  run: (bench) =>
    withScratch(async (scratch) => {
      const { addresses, own, its } = await twoSides(bench, scratch, 'bound-process');
      const samples = bench.scaled(45, 3);
      bench.say(`edit-to-traffic: ${samples} changes each`);
      for (let n = -3; n < samples; n++) {
        for (const { specs, folder, samples } of [own, its]) {
          const spec = specs[(n + 3) % specs.length];
          if (spec === undefined) continue;
          const address = addresses.pod(100_000 + n + 3);
          // From ten members to one first, so that a new one's answer is not nine others away.
          const [first] = spec.members;
          if (first === undefined) continue;
          folder.write({ ...spec, members: [first] });
          await pause(BETWEEN);
          folder.write({ ...spec, members: [{ address, port: MEMBER_PORT }] });
          const took = await untilAnswered(spec.vip, spec.port, address, performance.now());
          if (n >= 0) samples.push(took);
          await pause(BETWEEN);
        }
      }
      const [p50, p99] = [median(own.samples), percentile(own.samples, 0.99)];
      const bound = median(its.samples);
      return [
        row({
          name: 'edit-to-traffic',
          value: p50,
          unit: 'ms',
          target: 'p50 ≤ 2 × the bound, p99 ≤ 10 ms',
          met: p50 <= 2 * bound && p99 <= 10,
          reference: { name: 'the bound, p50', value: bound },
          others: [{ name: 'the bound, p99', value: percentile(its.samples, 0.99) }],
          details: { p99, samples: own.samples.length },
        }),
      ];
    }),
};
