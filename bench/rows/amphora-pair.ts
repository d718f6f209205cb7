// `failover-driver`: a pair of amphorae that Octavia's own driver pushes to, one of Headgate and one with Octavia's own agent,
// and a client that connects every 5 ms to a listener that the last push has added. The longest time without an answer when
// the active amphora is cut off and Headgate takes over. Reference: Octavia's agent takes over from Headgate. Both run the
// keepalived.conf of Octavia as it is, and most of the time is keepalived's wait. All hosts are network namespaces.

import {
  MEMBER_PORTS,
  PAIR_VIP,
  SIDES,
  type Side,
  startAmphoraPair,
} from '../../test/support/octavia/amphora-pair.ts';
import { missingForAmphora } from '../amphora/sides.ts';
import type { ClientOrder, Watched } from '../pair/client-process.ts';
import { demandPair } from '../pair/demand-pair.ts';
import { isolated } from '../support/isolated.ts';
import { startModule } from '../support/processes.ts';
import { type Bench, type Benchmark, row } from '../support/row.ts';
import { type Scratch, withScratch } from '../support/scratch.ts';
import { median } from '../support/statistics.ts';
import { pause, until } from '../support/until.ts';

const LOSSES = 3;
/** For answers after the first one. */
const AFTER_MS = 500;

export const amphoraPair: Benchmark = {
  rows: ['failover-driver'],
  run: async (bench, selected) => {
    demandPair();
    const missing = missingForAmphora();
    if (missing !== '') throw new Error(missing);
    return isolated(import.meta.url, bench, selected);
  },
};

export async function measure(bench: Bench): Promise<void> {
  /** Seconds, by the side that takes over. */
  const outages: Readonly<Record<Side, number[]>> = { headgate: [], reference: [] };
  for (const master of SIDES) {
    const standby = master === 'headgate' ? 'reference' : 'headgate';
    await withScratch(async (scratch) => outages[standby].push(...(await losses(bench, scratch, master))));
  }
  const { headgate, reference } = outages;
  const longest = Math.max(...headgate);
  bench.measured(
    row({
      name: 'failover-driver',
      value: median(headgate),
      unit: 's',
      target: '≤ 4 s, each time; a listener that was added is served by both',
      met: longest <= 4,
      reference: { name: "Octavia's own agent takes over", value: median(reference) },
      others: [{ name: "Octavia's own agent takes over, longest", value: Math.max(...reference) }],
      details: { shortest: Math.min(...headgate), longest, losses: headgate.length },
    }),
  );
}

/** The seconds without an answer of each loss of the master. */
async function losses(bench: Bench, scratch: Scratch, master: Side): Promise<readonly number[]> {
  const pair = await startAmphoraPair({ teardown: (undo) => scratch.defer(undo) }, master);
  const { network, holders, push, cut, join } = pair;
  const module = new URL('../pair/client-process.ts', import.meta.url);
  const within = ['nsenter', `--net=/run/netns/${network.netns('client')}`];
  const client = startModule(scratch, 'client', module, [], within);
  const ask = <T>(order: ClientOrder): Promise<T> => client.ask<T>(order);
  const outages: number[] = [];
  for (let n = 1; n <= bench.scaled(LOSSES); n++) {
    bench.report(`failover-driver: loss ${n} of ${master}`);
    await until('The master holds the VIP alone', async () => (await holders()) === master, { every: 100 });
    const port = 8_000 + n;
    await push([80, port]);
    const isAnswered = async (): Promise<boolean> => {
      const { stdout } = await network.try('client', 'curl', '-s', '-m', '1', `http://${PAIR_VIP}:${port}/`);
      return MEMBER_PORTS.some((member) => String(member) === stdout);
    };
    await until('The master serves the listener', isAnswered, { every: 100 });
    await ask({ kind: 'watch', address: PAIR_VIP, port });
    await pause(500 + Math.random() * 1_000); // an advertisement may be near
    await cut(master);
    await until('The standby serves the listener', isAnswered, { every: 100 });
    await pause(AFTER_MS);
    const { outage } = await ask<Watched>({ kind: 'end' });
    await join(master);
    outages.push(outage / 1_000);
  }
  return outages;
}
