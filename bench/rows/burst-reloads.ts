// `burst-reloads`: within one second, each of 1,000 Services gets another port and another endpoint, which commands
// cannot do: how many reloads does it take until all are served. Beside it a controller that reloads everything as
// soon as it can, and takes what has come meanwhile into the next reload.

import { ManifestFolder } from '../support/agent.ts';
import { responder, startHaproxy } from '../support/haproxy.ts';
import { Addresses, type ServiceSpec, services } from '../support/objects.ts';
import { type Serve, servedByAgent, servedByReloads } from '../support/reload-counts.ts';
import { request } from '../support/request.ts';
import { type Bench, type Benchmark, row } from '../support/row.ts';
import { withScratch } from '../support/scratch.ts';
import { pause, until } from '../support/until.ts';
import { listeningSockets } from '../support/usage.ts';

const MEMBER_PORT = 9000;

interface Side {
  readonly reloads: number;
  /** Services that answer at their new port with their new member. */
  readonly served: number;
  readonly count: number;
  /** Seconds from the last write until all listeners are there. */
  readonly seconds: number;
  /** Seconds that the writes took. */
  readonly writing: number;
}

async function measure(bench: Bench, port: number, serve: Serve): Promise<Side> {
  return withScratch(async (scratch) => {
    const addresses = new Addresses();
    const count = bench.scaled(1_000, 5);
    const member = responder(`0.0.0.0:${MEMBER_PORT}`);
    await startHaproxy(scratch, 'member', bench.haproxy, member.body, { globals: member.globals });
    const specs = services(addresses, count, 10, { port, memberPort: MEMBER_PORT });
    const folder = new ManifestFolder(scratch.path('m'), specs);
    const reloads = await serve(scratch, folder, count);
    await pause(2_000);
    const before = await reloads();
    const changed = specs.map((spec, at) => ({
      ...spec,
      port: port + 10,
      members: [{ address: addresses.pod(100_000 + at), port: MEMBER_PORT }],
    }));
    const began = performance.now();
    for (const [at, spec] of changed.entries()) {
      folder.write(spec);
      const ahead = began + ((at + 1) / count) * 950 - performance.now();
      if (ahead > 2) await pause(ahead);
    }
    const written = performance.now();
    const vips = specs.map(({ vip }) => vip);
    const areThere = (): boolean => listeningSockets(port + 10, vips) >= count;
    await until('All new listeners are there', areThere, { every: 20 });
    const seconds = (performance.now() - written) / 1_000;
    // What comes late, comes: another reload, a repair.
    await pause(2_500);
    const answers = await Promise.all(changed.map(isServed));
    return {
      reloads: (await reloads()) - before,
      served: answers.filter(Boolean).length,
      count,
      seconds,
      writing: (written - began) / 1_000,
    };
  });
}

async function isServed({ vip, port, members }: ServiceSpec): Promise<boolean> {
  const { failure, body } = await request(vip, port);
  return failure === '' && body === members[0]?.address;
}

export const burstReloads: Benchmark = {
  rows: ['burst-reloads'],
  run: async (bench) => {
    bench.say('burst-reloads: the agent');
    const own = await measure(bench, 8080, servedByAgent(bench));
    bench.say('burst-reloads: the controller that reloads');
    const its = await measure(bench, 8081, servedByReloads(bench));
    return [
      row({
        name: 'burst-reloads',
        value: own.reloads,
        unit: 'reloads',
        target: '≤ 3 reloads, all served',
        met: own.reloads <= 3 && own.served === own.count,
        reference: { name: 'a controller that reloads as soon as it can', value: its.reloads },
        others: [{ name: 'its seconds from the last write to all listeners', value: its.seconds }],
        details: {
          served: own.served,
          of: own.count,
          'seconds from the last write to all listeners': own.seconds,
          'seconds of writing': own.writing,
        },
      }),
    ];
  },
};
