// `edit-to-traffic`: a manifest replaces a Service's only endpoint; the time from the end of the write to the first answer
// of the new member, with 1,000 Services × 10 endpoints and no other change. Reference: the lower bound, in turns.

import { untilAnswered } from '../support/request.ts';
import { type Benchmark, row } from '../support/row.ts';
import { withScratch } from '../support/scratch.ts';
import { median, percentile } from '../support/statistics.ts';
import { MEMBER_PORT, twoSides } from '../support/two-sides.ts';
import { pause } from '../support/until.ts';

/** Between changes, long enough for the work that follows a change. */
const BETWEEN_MS = 450;

export const editToTraffic: Benchmark = {
  rows: ['edit-to-traffic'],
  run: (bench) =>
    withScratch(async (scratch) => {
      const { addresses, agent, reference } = await twoSides(bench, scratch, 'bound-process');
      const samples = bench.scaled(45, 3);
      bench.report(`edit-to-traffic: ${samples} changes each`);
      for (let n = -3; n < samples; n++) {
        for (const { specs, folder, samples } of [agent, reference]) {
          const spec = specs[(n + 3) % specs.length];
          if (spec === undefined) continue;
          const address = addresses.pod(100_000 + n + 3);
          // One member first, so that the next answer after the change is the new member's.
          const [first] = spec.members;
          if (first === undefined) continue;
          folder.write({ ...spec, members: [first] });
          await pause(BETWEEN_MS);
          folder.write({ ...spec, members: [{ address, port: MEMBER_PORT }] });
          const took = await untilAnswered(spec.vip, spec.port, address, performance.now());
          if (n >= 0) samples.push(took);
          await pause(BETWEEN_MS);
        }
      }
      const [p50, p99] = [median(agent.samples), percentile(agent.samples, 0.99)];
      const bound = median(reference.samples);
      bench.measured(
        row({
          name: 'edit-to-traffic',
          value: p50,
          unit: 'ms',
          target: 'p50 ≤ 2 × the lower bound, p99 ≤ 10 ms',
          met: p50 <= 2 * bound && p99 <= 10,
          reference: { name: 'lower bound, p50', value: bound },
          others: [{ name: 'lower bound, p99', value: percentile(reference.samples, 0.99) }],
          details: { p99, samples: agent.samples.length },
        }),
      );
    }),
};
