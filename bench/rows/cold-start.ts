// `cold-1k`, `cold-5k`: from the start of the process, on manifests in YAML and an empty state directory, to the first
// answer of a member and all listeners there. `rss-1k`, `rss-5k`: the agent's memory once it has settled and has
// seen some changes. Beside it the bound on the same manifests.

import { ManifestFolder, startAgent } from '../support/agent.ts';
import { type ColdSize, coldNames, coldRow, rssRow } from '../support/cold-rows.ts';
import { responder, startHaproxy } from '../support/haproxy.ts';
import { Addresses, type ServiceSpec, services } from '../support/objects.ts';
import { type Running, startModule } from '../support/processes.ts';
import { untilAnswered } from '../support/request.ts';
import type { Bench, Benchmark, Row } from '../support/row.ts';
import { type Scratch, withScratch } from '../support/scratch.ts';
import { pause, until } from '../support/until.ts';
import { listeningSockets, peakMemory, residentMemory } from '../support/usage.ts';

const AGENT_PORT = 8080;
const BOUND_PORT = 8081;
const MEMBER_PORT = 9000;

/** Milliseconds between two requests: who asks every millisecond takes a third of a core from what is measured. */
const ASKING = 10;

const sizes: readonly ColdSize[] = [
  { suffix: '1k', count: 1_000, size: 10, runs: 5, cold: 1, rss: 130 },
  { suffix: '5k', count: 5_000, size: 20, runs: 3, cold: 6, rss: 300 },
];

interface Measured {
  /** Seconds. */
  readonly cold: number[];
  /** MB, of the first run. */
  rss: number;
  peak: number;
}

/** Seconds from `start` to serving. */
async function startup(specs: readonly ServiceSpec[], start: () => Running): Promise<[number, Running]> {
  const [first] = specs;
  if (first === undefined) throw new Error('No Services');
  const vips = specs.map(({ vip }) => vip);
  const began = performance.now();
  const running = start();
  const failing = new Promise<never>((_, reject) => {
    running.child.once('exit', () => reject(new Error(`It has ended:\n${running.said()}`)));
  });
  failing.catch(() => undefined);
  const member = first.members[0]?.address ?? '';
  const answered = untilAnswered(first.vip, first.port, member, began, { most: 60_000, every: ASKING });
  await Promise.race([answered, failing]);
  await until('All listeners are there', () => listeningSockets(first.port, vips) >= specs.length, {
    most: 60_000,
  });
  return [(performance.now() - began) / 1_000, running];
}

/** Changes some Services and waits for all that follows from it. */
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
    // One member answers.
    const one = specs.map((spec, at) => (at === 0 ? { ...spec, members: spec.members.slice(0, 1) } : spec));
    return { specs: one, folder: new ManifestFolder(scratch.path(`${suffix}-${port}`), one) };
  });
  const agent: Measured = { cold: [], rss: Number.NaN, peak: Number.NaN };
  const bound: Measured = { cold: [], rss: Number.NaN, peak: Number.NaN };
  const [own, its] = folders;
  if (own === undefined || its === undefined) throw new Error('No folders');
  for (let run = 1; run <= bench.scaled(runs); run++) {
    bench.say(`cold-${suffix}: run ${run} of ${bench.scaled(runs)}`);
    const starters: [Measured, typeof own, () => Running][] = [
      [
        agent,
        own,
        () => startAgent(scratch, own.folder.path, { name: `a${suffix}${run}`, haproxy: bench.haproxy }),
      ],
      [
        bound,
        its,
        () => {
          const module = new URL('../reference/bound-process.ts', import.meta.url);
          return startModule(scratch, `b${suffix}${run}`, module, [its.folder.path, bench.haproxy]);
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
  run: async (bench, wanted) => {
    const rows: Row[] = [];
    for (const size of sizes) {
      const [cold, rss] = coldNames(size);
      if (!wanted.has(cold) && !wanted.has(rss)) continue;
      const runs = wanted.has(cold) ? size.runs : 1;
      const { agent, bound } = await withScratch(async (scratch) => {
        const member = responder(`0.0.0.0:${MEMBER_PORT}`);
        await startHaproxy(scratch, 'member', bench.haproxy, member.body, { globals: member.globals });
        return measure(bench, scratch, { ...size, runs }, wanted.has(rss));
      });
      if (wanted.has(cold)) rows.push(coldRow(size, agent.cold, bound.cold));
      if (wanted.has(rss)) rows.push(rssRow(size, agent, bound.rss));
    }
    return rows;
  },
};
