// `rolling-abrupt`: 3 of 10 members are killed without notice under a load of new connections, and no object changes:
// how many of the connections that begin then fail, and how much slower are they. A request that a member had got
// when it was killed is lost whatever stands before it: those are counted apart. Beside it the same configuration
// without `option redispatch`.

import { readFileSync, writeFileSync } from 'node:fs';
import { ManifestFolder, serving, startAgent } from '../support/agent.ts';
import { beforeOthers } from '../support/client-start.ts';
import { startLoad } from '../support/load.ts';
import type { LoadResult } from '../support/load-process.ts';
import { Members } from '../support/members.ts';
import { Addresses, services } from '../support/objects.ts';
import { start } from '../support/processes.ts';
import { type Benchmark, row } from '../support/row.ts';
import { withScratch } from '../support/scratch.ts';
import { median, percentile, sum } from '../support/statistics.ts';
import { pause, until } from '../support/until.ts';
import { listeningSockets } from '../support/usage.ts';

const MEMBERS = 10;
const MEMBER_PORT = 9000;
/** Connections a second. */
const RATE = 250;
const SECONDS = 3;
const ROUNDS = 4;

export const rollingAbrupt: Benchmark = {
  rows: ['rolling-abrupt'],
  run: (bench) =>
    withScratch(async (scratch) => {
      const count = bench.scaled(1_000, 5);
      const specs = services(new Addresses(), count, MEMBERS, { memberPort: MEMBER_PORT });
      const [spec] = specs;
      if (spec === undefined) throw new Error('No Service');
      const members = new Members(scratch, bench.haproxy);
      for (const member of spec.members) await members.start(member);
      const folder = new ManifestFolder(scratch.path('m'), specs);
      const agent = startAgent(scratch, folder.path, { haproxy: bench.haproxy });
      await serving(agent, count);
      const config = scratch.path('without.cfg');
      const text = readFileSync(agent.config, 'utf8')
        .replaceAll(scratch.path('agent-r/haproxy'), scratch.directory)
        .replaceAll(/^( {4}bind \S+):8080\b/gm, '$1:8085')
        .replaceAll(/^ +(?:option redispatch|retries).*\n/gm, '');
      writeFileSync(config, text);
      start(scratch, 'without', bench.haproxy, ['-W', '-f', config]);
      const vips = specs.map(({ vip }) => vip);
      await until('The other HAProxy serves', () => listeningSockets(8085, vips) >= count);

      // Clients are on other hosts: what a kill takes of a processor here, theirs do not wait for.
      const load = startLoad(scratch, beforeOthers());
      const put = (port: number, seconds = bench.scaled(SECONDS)): Promise<LoadResult> =>
        load({ addresses: [spec.vip], port, rate: RATE, seconds });
      const victims = [1, 4, 5].flatMap((at) => spec.members[at] ?? []);
      const killDuring = async (port: number): Promise<LoadResult & { killed: number }> => {
        const loading = put(port);
        await pause(200);
        for (const victim of victims) members.kill(victim);
        const killed = Date.now();
        return { ...(await loading), killed };
      };
      await put(8080, 1);
      const rounds: { quiet: number; killed: number; failures: number; cut: number; requests: number }[] = [];
      for (let round = 1; round <= ROUNDS; round++) {
        bench.say(`rolling-abrupt: round ${round} of ${ROUNDS}`);
        const quiet = await put(8080);
        const killed = await killDuring(8080);
        const cut = killed.failures.filter(({ began }) => began <= killed.killed).length;
        rounds.push({
          quiet: percentile(quiet.took, 0.99),
          killed: percentile(killed.took, 0.99),
          failures: quiet.failures.length + killed.failures.length - cut,
          cut,
          requests: killed.requests,
        });
        for (const victim of victims) await members.start(victim);
      }
      bench.say('rolling-abrupt: without redispatch');
      const without = await killDuring(8085);
      const failures = sum(rounds.map((each) => each.failures));
      const quiet = median(rounds.map((each) => each.quiet));
      const killed = median(rounds.map((each) => each.killed));
      const slower = median(rounds.map((each) => each.killed / each.quiet));
      return [
        row({
          name: 'rolling-abrupt',
          value: failures,
          unit: 'failed requests',
          target: '0 failed requests; p99 ≤ 3 × the undisturbed',
          met: failures === 0 && slower <= 3,
          reference: {
            name: 'the same without redispatch and retries: failed requests in one round',
            value: without.failures.length,
          },
          details: {
            'requests that a kill cut off': sum(rounds.map(({ cut }) => cut)),
            'p99 ÷ undisturbed': slower,
            'p99 in ms': killed,
            'undisturbed p99 in ms': quiet,
            requests: sum(rounds.map(({ requests }) => requests)),
            rounds: ROUNDS,
          },
        }),
      ];
    }),
};
