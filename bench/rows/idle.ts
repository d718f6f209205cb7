// `idle`: processor time of the agent and its HAProxy without traffic, changes or health checks, for longer than the
// period of an audit. Reference: at the same time, a HAProxy with the same configuration and no agent.

import { ManifestFolder, serving, startAgent } from '../support/agent.ts';
import { startCopy } from '../support/copied-haproxy.ts';
import { Addresses, services } from '../support/objects.ts';
import { type Benchmark, row } from '../support/row.ts';
import { withScratch } from '../support/scratch.ts';
import { sum } from '../support/statistics.ts';
import { pause } from '../support/until.ts';
import { processorTime, processTree } from '../support/usage.ts';

const SETTLE_MS = 5_000;
/** An audit runs every 30 s. */
const IDLE_MS = 31_000;

export const idle: Benchmark = {
  rows: ['idle'],
  run: (bench) =>
    withScratch(async (scratch) => {
      const count = bench.scaled(1_000, 5);
      const specs = services(new Addresses(), count, 10);
      const folder = new ManifestFolder(scratch.path('m'), specs);
      const agent = startAgent(scratch, folder.path, { haproxy: bench.haproxy });
      await serving(agent, count);
      const vips = specs.map(({ vip }) => vip);
      const copy = await startCopy(scratch, bench.haproxy, agent, vips);
      bench.report(`idle: ${(SETTLE_MS + IDLE_MS) / 1_000} s`);
      await pause(bench.scaled(SETTLE_MS, 200));
      const haproxy = agent.haproxyPids();
      const copies = processTree(copy.pid);
      const time = (pids: readonly number[]): number => sum(pids.map(processorTime));
      const [began, agentBegan, haproxyBegan, copiesBegan] = [
        performance.now(),
        processorTime(agent.pid),
        time(haproxy),
        time(copies),
      ];
      await pause(bench.scaled(IDLE_MS, 500));
      const took = performance.now() - began;
      const share = (milliseconds: number): number => (milliseconds / took) * 100;
      const [agentShare, haproxyShare] = [
        share(processorTime(agent.pid) - agentBegan),
        share(time(haproxy) - haproxyBegan),
      ];
      const value = agentShare + haproxyShare;
      bench.measured(
        row({
          name: 'idle',
          value,
          unit: '% of a core',
          target: '≤ 1 % of a core',
          met: value <= 1,
          reference: { name: 'HAProxy alone', value: share(time(copies) - copiesBegan) },
          details: { agent: agentShare, HAProxy: haproxyShare, seconds: took / 1_000 },
        }),
      );
    }),
};
