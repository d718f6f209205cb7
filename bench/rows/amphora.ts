// An amphora that Octavia's own driver pushes to; reference: Octavia's own agent, in turns.
// `push-to-traffic`: from the driver's call to the first answer of a new member, with 2, 100 and 1,000 members.
// `push-reloads`: reloads, and failed requests, of 20 pushes that add or remove a member under load.
// `sticky-pushes`: clients with SOURCE_IP persistence that 20 such pushes lead to another member.
// `push-memory`: processes of HAProxy after 20 pushes, with one long connection begun before each.
// `udp-push`: packets of 20 flows of UDP that are lost over 20 such pushes; reference: of those to a member itself,
//   because the IPVS of Octavia's agent is in few kernels.
// `heartbeat`: bytes of a heartbeat with 2,500 members; reference: what a datagram holds.
// `amphora-rss`: memory of the agent.

import { hash } from 'node:crypto';
import type { Socket } from 'node:net';
import { answerFor, longConnection } from '../amphora/clients.ts';
import { datagramFlows, echoes } from '../amphora/datagrams.ts';
import {
  type AmphoraMember,
  missingForAmphora,
  type Push,
  type Side,
  startSides,
  UDP_PORT,
} from '../amphora/sides.ts';
import { run } from '../pair/network.ts';
import { responder, startHaproxy } from '../support/haproxy.ts';
import { isolated } from '../support/isolated.ts';
import { request, untilAnswered } from '../support/request.ts';
import { type Bench, type Benchmark, row } from '../support/row.ts';
import { type Scratch, withScratch } from '../support/scratch.ts';
import { median } from '../support/statistics.ts';
import { pause, until } from '../support/until.ts';

const ROWS = [
  'push-to-traffic',
  'push-reloads',
  'sticky-pushes',
  'push-memory',
  'udp-push',
  'heartbeat',
  'amphora-rss',
] as const;
const MEMBER_PORT = 9_000;
const PUSHES = 20;
const CLIENTS = 20;
/** After a push, for the processes that it ends. */
const BETWEEN_MS = 300;

export const amphora: Benchmark = {
  rows: ROWS,
  run: async (bench, selected) => {
    const missing = missingForAmphora();
    if (missing !== '') throw new Error(missing);
    return isolated(import.meta.url, bench, selected);
  },
};

export async function measure(bench: Bench, selected: ReadonlySet<string>): Promise<void> {
  run(['ip', 'link', 'set', 'lo', 'up']);
  const rows: Readonly<Record<(typeof ROWS)[number], (scratch: Scratch, bench: Bench) => Promise<void>>> = {
    'push-to-traffic': pushToTraffic,
    'push-reloads': pushReloads,
    'sticky-pushes': stickyPushes,
    'push-memory': pushMemory,
    'udp-push': udpPush,
    heartbeat,
    'amphora-rss': amphoraRss,
  };
  for (const name of ROWS) if (selected.has(name)) await withScratch((scratch) => rows[name](scratch, bench));
}

/** Both amphorae, and members on all addresses of this namespace. */
async function sidesOf(scratch: Scratch, bench: Bench): Promise<readonly [headgate: Side, octavia: Side]> {
  const member = responder(`0.0.0.0:${MEMBER_PORT}`);
  await startHaproxy(scratch, 'member', bench.haproxy, member.body, { globals: member.globals });
  const { headgate, octavia } = await startSides(scratch, bench);
  return [headgate, octavia];
}

async function pushToTraffic(scratch: Scratch, bench: Bench): Promise<void> {
  const sides = await sidesOf(scratch, bench);
  const sizes = [2, 100, 1_000].map((size) => bench.scaled(size, 2));
  const took: number[][][] = sizes.map(() => sides.map(() => []));
  for (const [at, size] of sizes.entries()) {
    for (const side of sides) await side.push({ members: members(size) });
    for (let n = 0; n < bench.scaled(8, 2); n++) {
      bench.report(`push-to-traffic: ${size} members, ${n + 1}`);
      for (const [which, side] of sides.entries()) {
        // HAProxy chooses the heaviest soon, however many others there are.
        const fresh = { ...memberOf(5_000 + n), weight: 256 };
        const began = performance.now();
        const answered = untilAnswered(side.vip, side.port, fresh.address, began);
        await side.push({ members: [...members(size), fresh] });
        took[at]?.[which]?.push(await answered);
        await side.push({ members: members(size) });
        await pause(BETWEEN_MS);
      }
    }
  }
  const of = (at: number, which: number): number => median(took[at]?.[which] ?? []);
  const [own, others] = [of(1, 0), of(1, 1)];
  const ratios = sizes.map((_, at) => of(at, 0) / of(at, 1));
  bench.measured(
    row({
      name: 'push-to-traffic',
      value: own,
      unit: 'ms',
      target: '≤ 0.5 × Octavia’s agent, with 2, 100 and 1,000 members',
      met: ratios.every((ratio) => ratio <= 0.5),
      reference: { name: "Octavia's own agent", value: others },
      details: Object.fromEntries(
        sizes.flatMap((size, at) => [
          [`${size} members`, of(at, 0)],
          [`${size} members, Octavia's agent`, of(at, 1)],
        ]),
      ),
    }),
  );
}

async function pushReloads(scratch: Scratch, bench: Bench): Promise<void> {
  const sides = await sidesOf(scratch, bench);
  const results: { reloads: number; failed: number; requests: number }[] = [];
  for (const side of sides) {
    await side.push({ members: members(10) });
    let [requests, failed, isOver] = [0, 0, false];
    const load = (async () => {
      for (; !isOver; requests++) if ((await request(side.vip, side.port)).failure !== '') failed++;
    })();
    let reloads = 0;
    let worker = await side.worker();
    await eachPush(bench, side, 'push-reloads', async () => {
      const now = await side.worker();
      if (now !== worker) reloads++;
      worker = now;
    });
    isOver = true;
    await load;
    results.push({ reloads, failed, requests });
  }
  const [own, others] = results;
  if (own === undefined || others === undefined) throw new Error('No results');
  bench.measured(
    row({
      name: 'push-reloads',
      value: own.reloads,
      unit: 'reloads',
      target: '0 reloads, 0 failed requests',
      met: own.reloads === 0 && own.failed === 0 && own.requests > 0,
      reference: { name: "Octavia's own agent", value: others.reloads },
      details: { pushes: bench.scaled(PUSHES, 4), requests: own.requests, failed: own.failed },
    }),
  );
}

async function stickyPushes(scratch: Scratch, bench: Bench): Promise<void> {
  const sides = await sidesOf(scratch, bench);
  const moved: number[] = [];
  for (const side of sides) {
    await side.push({ members: members(10), isSticky: true });
    const first = await answers(side);
    await eachPush(bench, side, 'sticky-pushes', () => Promise.resolve(), true);
    const last = await answers(side, true);
    moved.push([...first].filter(([client, answer]) => last.get(client) !== answer).length);
  }
  const [own = Number.NaN, others = Number.NaN] = moved;
  bench.measured(
    row({
      name: 'sticky-pushes',
      value: own,
      unit: 'clients moved',
      target: '0',
      met: own === 0,
      reference: { name: "Octavia's own agent", value: others },
      details: { clients: CLIENTS, pushes: bench.scaled(PUSHES, 4) },
    }),
  );
}

async function pushMemory(scratch: Scratch, bench: Bench): Promise<void> {
  const sides = await sidesOf(scratch, bench);
  const workers: number[] = [];
  for (const side of sides) {
    await side.push({ members: members(10) });
    const master = 1;
    const open: Socket[] = [];
    await eachPush(bench, side, 'push-memory', async () => {
      open.push(await longConnection(side));
    });
    workers.push(side.haproxyPids().length - master);
    for (const socket of open) socket.destroy();
  }
  const [own = Number.NaN, others = Number.NaN] = workers;
  bench.measured(
    row({
      name: 'push-memory',
      value: own,
      unit: 'workers',
      target: '1',
      met: own === 1,
      reference: { name: "Octavia's own agent", value: others },
      details: { pushes: bench.scaled(PUSHES, 4) },
    }),
  );
}

async function udpPush(scratch: Scratch, bench: Bench): Promise<void> {
  const [side] = await sidesOf(scratch, bench);
  const all = [...members(10), memberOf(5_000)];
  scratch.defer(
    await echoes(
      all.map(({ address }) => address),
      MEMBER_PORT,
    ),
  );
  await side.push({ members: members(10), udpMembers: members(10) });
  const direct = await datagramFlows(all[0]?.address ?? '', MEMBER_PORT, 1);
  const flows = await datagramFlows(side.vip, UDP_PORT, CLIENTS);
  for (let n = 0; n < bench.scaled(PUSHES, 4); n++) {
    bench.report(`udp-push: push ${n + 1}`);
    await side.push({ members: members(10), udpMembers: n % 2 === 0 ? all : members(10) });
    await pause(BETWEEN_MS);
  }
  const { sent, lost, moved } = await flows.end();
  const beside = await direct.end();
  bench.measured(
    row({
      name: 'udp-push',
      value: lost,
      unit: 'packets lost',
      target: '0, and no flow with another member',
      met: lost === 0 && moved === 0 && sent > 0,
      reference: { name: 'packets to a member itself', value: beside.lost },
      details: { sent, flows: CLIENTS, moved, pushes: bench.scaled(PUSHES, 4) },
    }),
  );
}

async function heartbeat(scratch: Scratch, bench: Bench): Promise<void> {
  const [headgate] = await sidesOf(scratch, bench);
  const count = bench.scaled(2_500, 10);
  bench.report(`heartbeat: ${count} members`);
  const before = await headgate.metric('headgate_heartbeats_sent');
  await headgate.push({ members: members(count) });
  // The one that is being made may be of before.
  const later = async (): Promise<boolean> =>
    (await headgate.metric('headgate_heartbeats_sent')) >= before + 2;
  await until('Two more heartbeats are sent', later, { most: 60_000, every: 500 });
  const bytes = await headgate.metric('headgate_heartbeat_bytes');
  bench.measured(
    row({
      name: 'heartbeat',
      value: bytes,
      unit: 'bytes',
      target: '≤ 60,000 bytes',
      met: bytes > 0 && bytes <= 60_000,
      reference: { name: 'a datagram of IPv4 at most', value: 65_507 },
      details: { members: count },
    }),
  );
}

async function amphoraRss(scratch: Scratch, bench: Bench): Promise<void> {
  const sides = await sidesOf(scratch, bench);
  const memory: number[] = [];
  for (const side of sides) {
    await side.push({ members: members(100) });
    await eachPush(bench, side, 'amphora-rss', () => Promise.resolve());
    memory.push(side.agentMemory());
  }
  const [own = Number.NaN, others = Number.NaN] = memory;
  bench.measured(
    row({
      name: 'amphora-rss',
      value: own,
      unit: 'MB',
      target: '≤ 90 MB',
      met: own <= 90,
      reference: { name: "Octavia's own agent, without its health daemon", value: others },
    }),
  );
}

/** Adds and removes a member in turns. `after` is called when a push has ended. */
async function eachPush(
  bench: Bench,
  side: Side,
  name: string,
  after: () => Promise<void>,
  isSticky = false,
): Promise<void> {
  for (let n = 0; n < bench.scaled(PUSHES, 4); n++) {
    bench.report(`${name}: ${side.name}, push ${n + 1}`);
    const more: Push = { members: n % 2 === 0 ? [...members(10), memberOf(5_000)] : members(10), isSticky };
    await side.push(more);
    await after();
    await pause(BETWEEN_MS);
  }
}

function members(count: number): readonly AmphoraMember[] {
  return Array.from({ length: count }, (_, at) => memberOf(at));
}

function memberOf(at: number): AmphoraMember {
  // As random as Octavia's: a heartbeat is compressed.
  const id = hash('md5', String(at)).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  return { id, address: `127.60.${at >> 8}.${at & 255}`, port: MEMBER_PORT };
}

/** Client's address → the member that answers it. In another order a balancer that has forgotten them chooses others. */
async function answers(side: Side, isReversed = false): Promise<ReadonlyMap<string, string>> {
  const clients = Array.from({ length: CLIENTS }, (_, n) => `127.61.0.${1 + n}`);
  const all = new Map<string, string>();
  for (const client of isReversed ? clients.reverse() : clients)
    all.set(client, await answerFor(side, client));
  return all;
}
