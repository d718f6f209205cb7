// `burst-reloads`: each of 1,000 Services gets another port and another endpoint within one second, which needs a reload;
// the number of reloads until all are served. Reference: a controller that reloads everything as soon as it can.

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
  /** Services whose new member answers at the new port. */
  readonly served: number;
  readonly count: number;
  /** Seconds from the last write until all listeners exist. */
  readonly seconds: number;
  /** Seconds of all writes. */
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
    const doExist = (): boolean => listeningSockets(port + 10, vips) >= count;
    await until('All new listeners exist', doExist, { every: 20 });
    const seconds = (performance.now() - written) / 1_000;
    // Time for a late reload or repair.
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
    bench.report('burst-reloads: agent');
    const agent = await measure(bench, 8080, servedByAgent(bench));
    bench.report('burst-reloads: controller that reloads');
    const controller = await measure(bench, 8081, servedByReloads(bench));
    bench.measured(
      row({
        name: 'burst-reloads',
        value: agent.reloads,
        unit: 'reloads',
        target: '≤ 3 reloads, all served',
        met: agent.reloads <= 3 && agent.served === agent.count,
        reference: { name: 'controller that reloads as soon as it can', value: controller.reloads },
        others: [
          { name: 'controller: seconds from the last write to all listeners', value: controller.seconds },
        ],
        details: {
          served: agent.served,
          of: agent.count,
          'seconds from the last write to all listeners': agent.seconds,
          'seconds of all writes': agent.writing,
        },
      }),
    );
  },
};
