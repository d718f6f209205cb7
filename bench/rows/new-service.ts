// `new-service`: a Service and its slice are written; from the moment the write has returned to the first request
// answered, with 1,000 Services × 10 endpoints present. Needs one reload. Beside it a controller that renders, checks
// and reloads everything; the two take turns.

import { ManifestFolder, serving, startAgent } from '../support/agent.ts';
import { responder, startHaproxy } from '../support/haproxy.ts';
import { Addresses, services } from '../support/objects.ts';
import { startModule } from '../support/processes.ts';
import { untilAnswered } from '../support/request.ts';
import { type Benchmark, row } from '../support/row.ts';
import { withScratch } from '../support/scratch.ts';
import { median } from '../support/statistics.ts';
import { pause } from '../support/until.ts';

const MEMBER_PORT = 9000;
/** Milliseconds: more than the least time between two reloads. */
const BETWEEN = 1_300;

export const newService: Benchmark = {
  rows: ['new-service'],
  run: (bench) =>
    withScratch(async (scratch) => {
      const addresses = new Addresses();
      const count = bench.scaled(1_000, 5);
      const member = responder(`0.0.0.0:${MEMBER_PORT}`);
      await startHaproxy(scratch, 'member', bench.haproxy, member.body, { globals: member.globals });
      const sides = [8080, 8081].map((port) => {
        const specs = services(addresses, count, 10, { port, memberPort: MEMBER_PORT });
        return { port, folder: new ManifestFolder(scratch.path(`m${port}`), specs), samples: [] as number[] };
      });
      const [own, its] = sides;
      if (own === undefined || its === undefined) throw new Error('Two sides');
      const agent = startAgent(scratch, own.folder.path, { haproxy: bench.haproxy });
      await serving(agent, count);
      const module = new URL('../reference/full-reload-process.ts', import.meta.url);
      const controller = startModule(scratch, 'full-reload', module, [its.folder.path, bench.haproxy]);
      await controller.ask({});
      await pause(BETWEEN);

      const samples = bench.scaled(10, 2);
      bench.say(`new-service: ${samples} Services each`);
      for (let n = -1; n < samples; n++) {
        for (const { port, folder, samples } of sides) {
          const [spec] = services(addresses, 1, 1, {
            port,
            memberPort: MEMBER_PORT,
            from: count + n + 1,
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
