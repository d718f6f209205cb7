// `rolling-abrupt`: 3 of 10 members are killed under a load of new connections, and no object changes; the number of failed
// connections and the increase of the latency. A request that a killed member had received is lost with any load balancer,
// so those are counted separately. Reference: the same configuration without `option redispatch`.

import { ManifestFolder, serving, startAgent } from '../support/agent.ts';
import { beforeOthers } from '../support/client-start.ts';
import { COPY_PORT, startCopy } from '../support/copied-haproxy.ts';
import { startLoad } from '../support/load.ts';
import type { LoadResult } from '../support/load-process.ts';
import { Members } from '../support/members.ts';
import { Addresses, services } from '../support/objects.ts';

import { type Benchmark, row } from '../support/row.ts';
import { withScratch } from '../support/scratch.ts';
import { median, percentile, sum } from '../support/statistics.ts';
import { pause } from '../support/until.ts';

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
      const vips = specs.map(({ vip }) => vip);
      await startCopy(scratch, bench.haproxy, agent, vips, (text) =>
        text.replaceAll(/^ +(?:option redispatch|retries).*\n/gm, ''),
      );

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
        bench.report(`rolling-abrupt: round ${round} of ${ROUNDS}`);
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
      bench.report('rolling-abrupt: without redispatch');
      const without = await killDuring(COPY_PORT);
      const failures = sum(rounds.map((each) => each.failures));
      const quiet = median(rounds.map((each) => each.quiet));
      const killed = median(rounds.map((each) => each.killed));
      const slower = median(rounds.map((each) => each.killed / each.quiet));
      bench.measured(
        row({
          name: 'rolling-abrupt',
          value: failures,
          unit: 'failed requests',
          target: '0 failed requests; p99 ≤ 3 × the p99 without a kill',
          met: failures === 0 && slower <= 3,
          reference: {
            name: 'without redispatch and retries: failed requests in one round',
            value: without.failures.length,
          },
          details: {
            'requests that ended with their member': sum(rounds.map(({ cut }) => cut)),
            'p99 ÷ p99 without a kill': slower,
            'p99 in ms': killed,
            'p99 without a kill in ms': quiet,
            requests: sum(rounds.map(({ requests }) => requests)),
            rounds: ROUNDS,
          },
        }),
      );
    }),
};
