// `idle`: processor time of the agent and its HAProxy with nothing to do: no traffic, no change, checks off. Long
// enough for an audit. Beside it, at the same time, a HAProxy with the same configuration and no agent.

import { readFileSync, writeFileSync } from 'node:fs';
import { ManifestFolder, serving, startAgent } from '../support/agent.ts';
import { Addresses, services } from '../support/objects.ts';
import { start } from '../support/processes.ts';
import { type Benchmark, row } from '../support/row.ts';
import { withScratch } from '../support/scratch.ts';
import { sum } from '../support/statistics.ts';
import { pause, until } from '../support/until.ts';
import { listeningSockets, processorTime, processTree } from '../support/usage.ts';

/** Milliseconds; an audit comes every 30 s. */
const SETTLE = 5_000;
const LONG = 31_000;

export const idle: Benchmark = {
  rows: ['idle'],
  run: (bench) =>
    withScratch(async (scratch) => {
      const count = bench.scaled(1_000, 5);
      const specs = services(new Addresses(), count, 10);
      const folder = new ManifestFolder(scratch.path('m'), specs);
      const agent = startAgent(scratch, folder.path, { haproxy: bench.haproxy });
      await serving(agent, count);
      // The same text, with sockets and ports of its own.
      const config = scratch.path('alone.cfg');
      const text = readFileSync(agent.config, 'utf8')
        .replaceAll(scratch.path('agent-r/haproxy'), scratch.directory)
        .replaceAll(/^( {4}bind \S+):8080\b/gm, '$1:8085');
      writeFileSync(config, text);
      const alone = start(scratch, 'alone', bench.haproxy, ['-W', '-f', config]);
      const vips = specs.map(({ vip }) => vip);
      await until('The other HAProxy serves', () => listeningSockets(8085, vips) >= count);
      bench.say(`idle: ${(SETTLE + LONG) / 1_000} s`);
      await pause(bench.scaled(SETTLE, 200));
      const haproxy = agent.haproxyPids();
      const others = processTree(alone.pid);
      const time = (pids: readonly number[]): number => sum(pids.map(processorTime));
      const [began, agentBegan, haproxyBegan, othersBegan] = [
        performance.now(),
        processorTime(agent.pid),
        time(haproxy),
        time(others),
      ];
      await pause(bench.scaled(LONG, 500));
      const took = performance.now() - began;
      const share = (milliseconds: number): number => (milliseconds / took) * 100;
      const [agentShare, haproxyShare] = [
        share(processorTime(agent.pid) - agentBegan),
        share(time(haproxy) - haproxyBegan),
      ];
      const value = agentShare + haproxyShare;
      return [
        row({
          name: 'idle',
          value,
          unit: '% of a core',
          target: '≤ 1 % of a core',
          met: value <= 1,
          reference: { name: 'HAProxy alone', value: share(time(others) - othersBegan) },
          details: { agent: agentShare, HAProxy: haproxyShare, seconds: took / 1_000 },
        }),
      ];
    }),
};
