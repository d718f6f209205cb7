// `ack-1k`, `ack-5k`: the time from an event of a watch that replaces an endpoint to HAProxy's acknowledgement of the last
// command. References: the lower bound with the same events, and a controller that checks and reloads. They take turns,
// so that all meet the same noise.

import { mkdirSync } from 'node:fs';
import type { Reloads } from '../reference/full-reload-process.ts';
import type { AckAnswer, AckOrder } from '../support/ack-feed.ts';
import { ManifestFolder } from '../support/agent.ts';
import { Addresses, services } from '../support/objects.ts';
import { startModule } from '../support/processes.ts';
import { type Bench, type Benchmark, row } from '../support/row.ts';
import { type Scratch, withScratch } from '../support/scratch.ts';
import { median, percentile } from '../support/statistics.ts';

const ROUNDS = 4;

interface Contender {
  readonly samples: number[];
  readonly round: (samples: number) => Promise<void>;
}

async function contender(
  bench: Bench,
  scratch: Scratch,
  module: 'ack-agent' | 'ack-bound',
  count: number,
  size: number,
  port: number,
): Promise<Contender> {
  const name = `${module}-${size}`;
  const directory = scratch.path(name);
  mkdirSync(directory);
  const child = startModule(scratch, name, new URL(`../support/${module}.ts`, import.meta.url));
  const order: AckOrder = { directory, haproxy: bench.haproxy, count, size, port };
  await child.ask<AckAnswer>(order);
  await child.ask<AckAnswer>({ samples: 20 });
  const samples: number[] = [];
  return {
    samples,
    round: async (count) => {
      samples.push(...(await child.ask<AckAnswer>({ samples: count })).samples);
    },
  };
}

/** Median milliseconds of a change for a controller that reloads at each change. */
async function fullReload(bench: Bench, scratch: Scratch, count: number, size: number): Promise<number> {
  const specs = services(new Addresses(), count, size, { port: 8084 });
  const folder = new ManifestFolder(scratch.path('full-reload'), specs);
  const module = new URL('../reference/full-reload-process.ts', import.meta.url);
  const child = startModule(scratch, 'full-reload', module, [folder.path, bench.haproxy]);
  await child.ask<Reloads>({});
  const times: number[] = [];
  for (let n = 0; n < bench.scaled(6, 2); n++) {
    const spec = specs[n % specs.length];
    if (spec === undefined) break;
    folder.write({ ...spec, members: [...spec.members.slice(1), { address: '127.0.0.1', port: 9000 }] });
    times.push(...(await waitForReload(() => child.ask<Reloads>({}))));
  }
  await child.stop();
  return median(times);
}

async function waitForReload(ask: () => Promise<Reloads>): Promise<readonly number[]> {
  for (;;) {
    const { reloads } = await ask();
    if (reloads.length > 0) return reloads;
  }
}

export const ack: Benchmark = {
  rows: ['ack-1k', 'ack-5k'],
  run: (bench, selected) =>
    withScratch(async (scratch) => {
      const small = [bench.scaled(1_000, 5), bench.scaled(10, 3)] as const;
      const large = [bench.scaled(5_000, 10), bench.scaled(20, 4)] as const;
      bench.report('ack: preparing');
      const agent = await contender(bench, scratch, 'ack-agent', ...small, 8080);
      const bound = await contender(bench, scratch, 'ack-bound', ...small, 8081);
      const isLarge = selected.has('ack-5k');
      const largeAgent = isLarge ? await contender(bench, scratch, 'ack-agent', ...large, 8082) : undefined;
      const largeBound = isLarge ? await contender(bench, scratch, 'ack-bound', ...large, 8083) : undefined;
      for (let round = 1; round <= ROUNDS; round++) {
        bench.report(`ack: round ${round} of ${ROUNDS}`);
        for (const each of [agent, bound, largeAgent, largeBound]) await each?.round(bench.scaled(100, 5));
      }
      if (selected.has('ack-1k')) {
        bench.report('ack: controller that reloads');
        const others = [
          {
            name: 'HAProxy checked and reloaded for each change, p50',
            value: await fullReload(bench, scratch, ...small),
          },
        ];
        const [p50, p99] = [median(agent.samples), percentile(agent.samples, 0.99)];
        const ofBound = median(bound.samples);
        bench.measured(
          row({
            name: 'ack-1k',
            value: p50,
            unit: 'ms',
            target: 'p50 ≤ 1 ms or 3 × the lower bound, whichever is more; p99 ≤ 5 ms',
            met: p50 <= Math.max(1, 3 * ofBound) && p99 <= 5,
            reference: { name: 'lower bound, p50', value: ofBound },
            others: [{ name: 'lower bound, p99', value: percentile(bound.samples, 0.99) }, ...others],
            details: { p99, samples: agent.samples.length },
          }),
        );
      }
      if (largeAgent !== undefined && largeBound !== undefined) {
        const [p50, p99] = [median(largeAgent.samples), percentile(largeAgent.samples, 0.99)];
        const reference = { name: 'ack-1k in the same run, p50', value: median(agent.samples) };
        bench.measured(
          row({
            name: 'ack-5k',
            value: p50,
            unit: 'ms',
            target: '≤ 1.5 × ack-1k',
            met: p50 <= 1.5 * reference.value,
            reference,
            others: [
              { name: 'lower bound, p50', value: median(largeBound.samples) },
              { name: 'lower bound, p99', value: percentile(largeBound.samples, 0.99) },
            ],
            details: {
              p99,
              'p99 of ack-1k': percentile(agent.samples, 0.99),
              samples: largeAgent.samples.length,
            },
          }),
        );
      }
    }),
};
