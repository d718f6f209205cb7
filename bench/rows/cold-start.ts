// `cold-1k`, `cold-5k`: with manifests in YAML and an empty state directory, the time from the start of the process until
// a member answers and all listeners exist. `rss-1k`, `rss-5k`: the agent's memory after some changes, at rest.
// Reference: the lower bound on the same manifests.

import { ManifestFolder, startAgent } from '../support/agent.ts';
import { type ColdSize, coldNames, coldRow, rssRow } from '../support/cold-rows.ts';
import { responder, startHaproxy } from '../support/haproxy.ts';
import { Addresses, type ServiceSpec, services } from '../support/objects.ts';
import { beforeItsEnd, type Running, startModule } from '../support/processes.ts';
import { untilAnswered } from '../support/request.ts';
import type { Bench, Benchmark } from '../support/row.ts';
import { type Scratch, withScratch } from '../support/scratch.ts';
import { pause, until } from '../support/until.ts';
import { listeningSockets, peakMemory, residentMemory } from '../support/usage.ts';

const AGENT_PORT = 8080;
const BOUND_PORT = 8081;
const MEMBER_PORT = 9000;

/** Between two requests of the client, which must not take the processor from the measured process. */
const REQUEST_INTERVAL_MS = 10;

const sizes: readonly ColdSize[] = [
  { suffix: '1k', count: 1_000, size: 10, runs: 5, cold: { most: 3, of: 'bound' }, rss: 150 },
  { suffix: '5k', count: 5_000, size: 20, runs: 3, cold: { most: 6, of: 'seconds' }, rss: 300 },
];

interface Measured {
  /** Seconds. */
  readonly cold: number[];
  /** MB in the first run. */
  rss: number;
  peak: number;
}

/** Resolves with the seconds until all `specs` are served, and the process. */
async function startup(specs: readonly ServiceSpec[], start: () => Running): Promise<[number, Running]> {
  const [first] = specs;
  if (first === undefined) throw new Error('No Services');
  const vips = specs.map(({ vip }) => vip);
  const began = performance.now();
  const running = start();
  const member = first.members[0]?.address ?? '';
  const options = { most: 60_000, every: REQUEST_INTERVAL_MS };
  await beforeItsEnd(running, untilAnswered(first.vip, first.port, member, began, options));
  await until('All listeners exist', () => listeningSockets(first.port, vips) >= specs.length, {
    most: 60_000,
  });
  return [(performance.now() - began) / 1_000, running];
}

/** Changes some Services and waits for the end of the work that follows. */
async function settle(bench: Bench, folder: ManifestFolder, specs: readonly ServiceSpec[]): Promise<void> {
  await pause(bench.scaled(5_000, 200));
  for (const spec of specs.slice(1, bench.scaled(100, 3))) {
    folder.write({
      ...spec,
      members: [...spec.members.slice(1), { address: '127.0.0.2', port: MEMBER_PORT }],
    });
    await pause(20);
  }
  await pause(bench.scaled(5_000, 200));
  for (const spec of specs.slice(1, bench.scaled(100, 3))) folder.write(spec);
}

async function measure(
  bench: Bench,
  scratch: Scratch,
  { suffix, count, size, runs }: ColdSize,
  isRss: boolean,
) {
  const addresses = new Addresses();
  const folders = [AGENT_PORT, BOUND_PORT].map((port) => {
    const specs = services(addresses, bench.scaled(count, 5), size, { port, memberPort: MEMBER_PORT });
    // The first Service has one member, whose answer shows the end of the start.
    const one = specs.map((spec, at) => (at === 0 ? { ...spec, members: spec.members.slice(0, 1) } : spec));
    return { specs: one, folder: new ManifestFolder(scratch.path(`${suffix}-${port}`), one) };
  });
  const agent: Measured = { cold: [], rss: Number.NaN, peak: Number.NaN };
  const bound: Measured = { cold: [], rss: Number.NaN, peak: Number.NaN };
  const [ofAgent, ofBound] = folders;
  if (ofAgent === undefined || ofBound === undefined) throw new Error('No folders');
  for (let run = 1; run <= bench.scaled(runs); run++) {
    bench.report(`cold-${suffix}: run ${run} of ${bench.scaled(runs)}`);
    const starters: [Measured, typeof ofAgent, () => Running][] = [
      [
        agent,
        ofAgent,
        () => startAgent(scratch, ofAgent.folder.path, { name: `a${suffix}${run}`, haproxy: bench.haproxy }),
      ],
      [
        bound,
        ofBound,
        () => {
          const module = new URL('../reference/bound-process.ts', import.meta.url);
          return startModule(scratch, `b${suffix}${run}`, module, [ofBound.folder.path, bench.haproxy]);
        },
      ],
    ];
    for (const [measured, { folder, specs }, start] of starters) {
      const [seconds, running] = await startup(specs, start);
      measured.cold.push(seconds);
      if (isRss && run === 1) {
        await settle(bench, folder, specs);
        measured.rss = residentMemory(running.pid);
        measured.peak = peakMemory(running.pid);
      }
      await running.stop();
      const vips = specs.map(({ vip }) => vip);
      await until('The ports are free again', () => listeningSockets(specs[0]?.port ?? 0, vips) === 0);
    }
  }
  return { agent, bound };
}

export const coldStart: Benchmark = {
  rows: sizes.flatMap(coldNames),
  run: async (bench, selected) => {
    for (const size of sizes) {
      const [cold, rss] = coldNames(size);
      if (!selected.has(cold) && !selected.has(rss)) continue;
      const runs = selected.has(cold) ? size.runs : 1;
      const { agent, bound } = await withScratch(async (scratch) => {
        const member = responder(`0.0.0.0:${MEMBER_PORT}`);
        await startHaproxy(scratch, 'member', bench.haproxy, member.body, { globals: member.globals });
        return measure(bench, scratch, { ...size, runs }, selected.has(rss));
      });
      if (selected.has(cold)) bench.measured(coldRow(size, agent.cold, bound.cold));
      if (selected.has(rss)) bench.measured(rssRow(size, agent, bound.rss));
    }
  },
};
