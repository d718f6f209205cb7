// `rolling`: all ten members of a Service are replaced one after the other under a load of new connections, as a Deployment
// does: the new member is added, the old one terminates, serves for another second, ends and is removed. Reference: a
// controller that checks and reloads everything.

import { ManifestFolder } from '../support/agent.ts';
import { startLoad } from '../support/load.ts';
import { Members } from '../support/members.ts';
import { Addresses, type MemberSpec, type ServiceSpec, services } from '../support/objects.ts';
import { type Serve, servedByAgent, servedByReloads } from '../support/reload-counts.ts';
import { type Bench, type Benchmark, row } from '../support/row.ts';
import { withScratch } from '../support/scratch.ts';
import { percentile } from '../support/statistics.ts';
import { pause } from '../support/until.ts';

const MEMBERS = 10;
const MEMBER_PORT = 9000;
/** Connections a second. */
const RATE = 200;
/** Between the replacements of two members. */
const STEP_MS = 500;
/** During which a terminating member still serves. */
const GRACE_MS = 1_000;
const LOAD_SECONDS = 8;

/** Replaces each member with the same writes as a cluster. */
async function roll(
  spec: ServiceSpec,
  fresh: readonly MemberSpec[],
  members: Members,
  folder: ManifestFolder,
): Promise<void> {
  let current = spec.members;
  const write = (next: readonly MemberSpec[]): void => {
    current = next;
    folder.write({ ...spec, members: current });
  };
  const isOther = (one: MemberSpec) => (other: MemberSpec) => other.address !== one.address;
  const replaced = spec.members.map(async (old, at) => {
    const added = fresh[at];
    if (added === undefined) return;
    await pause(at * STEP_MS);
    await members.start(added);
    write([...current, added]);
    await pause(100);
    write([...current.filter(isOther(old)), { ...old, terminating: true }]);
    await pause(GRACE_MS);
    members.end(old);
    write(current.filter(isOther(old)));
  });
  await Promise.all(replaced);
}

interface Side {
  readonly failures: number;
  readonly requests: number;
  readonly reloads: number;
  readonly p99: number;
}

async function measure(bench: Bench, port: number, serve: Serve): Promise<Side> {
  return withScratch(async (scratch) => {
    const addresses = new Addresses();
    const count = bench.scaled(1_000, 5);
    const specs = services(addresses, count, MEMBERS, { port, memberPort: MEMBER_PORT });
    const folder = new ManifestFolder(scratch.path('m'), specs);
    const [spec] = specs;
    if (spec === undefined) throw new Error('No Service');
    const members = new Members(scratch, bench.haproxy);
    for (const member of spec.members) await members.start(member);
    const reloads = await serve(scratch, folder, count);
    const load = startLoad(scratch);
    await load({ addresses: [spec.vip], port, rate: RATE, seconds: 1 });
    const before = await reloads();
    const loading = load({ addresses: [spec.vip], port, rate: RATE, seconds: LOAD_SECONDS });
    const fresh = spec.members.map((_, at) => ({ address: addresses.pod(100_000 + at), port: MEMBER_PORT }));
    await pause(500);
    await roll(spec, fresh, members, folder);
    const { requests, failures, took } = await loading;
    return {
      requests,
      failures: failures.length,
      reloads: (await reloads()) - before,
      p99: percentile(took, 0.99),
    };
  });
}

export const rolling: Benchmark = {
  rows: ['rolling'],
  run: async (bench) => {
    bench.report('rolling: agent');
    const agent = await measure(bench, 8080, servedByAgent(bench));
    bench.report('rolling: controller that reloads');
    const controller = await measure(bench, 8081, servedByReloads(bench));
    const name = 'controller that checks and reloads everything';
    bench.measured(
      row({
        name: 'rolling',
        value: agent.failures,
        unit: 'failed requests',
        target: '0 failed requests, 0 reloads',
        met: agent.failures === 0 && agent.reloads === 0,
        reference: { name: `${name}: failed requests`, value: controller.failures },
        others: [
          { name: `${name}: reloads`, value: controller.reloads },
          { name: `${name}: p99 in ms`, value: controller.p99 },
        ],
        details: { reloads: agent.reloads, requests: agent.requests, 'p99 in ms': agent.p99 },
      }),
    );
  },
};
