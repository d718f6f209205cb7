// `rss-kernel`: a host with 1,000 ports of the kernel path × 10 endpoints: the most memory that the agent and its children
// have at one time, from the start to the end of 100 changes; HAProxy is not counted. Reference: the agent alone at that time.
// In a network namespace of its own.

import { readFileSync } from 'node:fs';
import { run } from '../pair/network.ts';
import { ManifestFolder, startAgent } from '../support/agent.ts';
import { isolated } from '../support/isolated.ts';
import { Addresses, services } from '../support/objects.ts';
import { type Bench, type Benchmark, row } from '../support/row.ts';
import { withScratch } from '../support/scratch.ts';
import { sum } from '../support/statistics.ts';
import { pause, until } from '../support/until.ts';
import { processTree, residentMemory } from '../support/usage.ts';

const MOST_MB = 250;
/** A listing of nft lives for longer. */
const LOOK_EVERY_MS = 20;
/** For audits and the writing of files. */
const TAIL_MS = 40_000;

export const rssKernel: Benchmark = {
  rows: ['rss-kernel'],
  run: (bench, selected) => isolated(import.meta.url, bench, selected),
};

export async function measure(bench: Bench): Promise<void> {
  await withScratch(async (scratch) => {
    run(['ip', 'link', 'set', 'lo', 'up']);
    run(['sysctl', '-qw', 'net.ipv4.ip_forward=1']);
    const count = bench.scaled(1_000, 5);
    // The kernel passes no connections of others to 127.0.0.0/8.
    const inside = (address: string): string => address.replace(/^127\./, '10.');
    const specs = services(new Addresses(), count, 10).map((spec) => ({
      ...spec,
      vip: inside(spec.vip),
      members: spec.members.map((member) => ({ ...member, address: inside(member.address) })),
      annotations: { engine: 'kernel' },
    }));
    const folder = new ManifestFolder(scratch.path('m'), specs);
    bench.report(`rss-kernel: ${count} ports`);
    const agent = startAgent(scratch, folder.path, { haproxy: bench.haproxy });
    let [most, alone, later] = [0, 0, 0];
    let isServed = false;
    const looks = setInterval(() => {
      const others = processTree(agent.pid).filter((pid) => pid !== agent.pid && !isHaproxy(pid));
      const own = residentMemory(agent.pid);
      const all = own + sum(others.map(residentMemory));
      if (all > most) [most, alone] = [all, own];
      if (isServed) later = Math.max(later, all);
    }, LOOK_EVERY_MS);
    scratch.defer(() => clearInterval(looks));
    const served = async (): Promise<boolean> =>
      (await agent.counter('headgate_listener_up').catch(() => 0)) >= count;
    await until(`The kernel serves ${count} ports`, served, { most: 120_000, every: 500 });
    isServed = true;
    for (const spec of specs.slice(0, bench.scaled(100, 3))) {
      folder.write({ ...spec, members: spec.members.slice(1) });
      await pause(20);
    }
    await pause(bench.scaled(TAIL_MS, 500));
    clearInterval(looks);
    bench.measured(
      row({
        name: 'rss-kernel',
        value: most,
        unit: 'MB',
        target: `≤ ${MOST_MB} MB`,
        met: most <= MOST_MB,
        reference: { name: 'the agent without its children, at the same time', value: alone },
        others: [{ name: 'most after the start', value: later }],
        details: { ports: count },
      }),
    );
  });
}

function isHaproxy(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'latin1') === 'haproxy\n';
  } catch {
    return false; // it has ended
  }
}
