// `make demo-octavia` (root): Octavia's own driver pushes a load balancer to two amphorae, Headgate and Octavia's own agent, and
// changes its members under load; the table says what clients saw. Everything runs in a network namespace of its own and
// ends with it. The status is other than 0 if a request through Headgate failed, or a change of members reloaded it.

import { spawnSync } from 'node:child_process';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { styleText } from 'node:util';
import { answerFor, longConnection } from '../bench/amphora/clients.ts';
import {
  type AmphoraMember,
  missingForAmphora,
  type Push,
  type Side,
  startSides,
} from '../bench/amphora/sides.ts';
import { run } from '../bench/pair/network.ts';
import { benchOf } from '../bench/support/bench.ts';
import { responder, startHaproxy } from '../bench/support/haproxy.ts';
import { cleanAll, withScratch } from '../bench/support/scratch.ts';
import { median } from '../bench/support/statistics.ts';
import { PATH } from './demo-path.ts';
import { endAll } from './demo-processes.ts';
import { DemoTraffic } from './demo-traffic.ts';

process.env.PATH = PATH;
const MEMBER_PORT = 9_000;
const FEW = 5;
const MORE = 5;
/** For persistence and long connections. */
const PUSHES = 10;
const BETWEEN_MS = 300;
const WIDTHS = [30, 10, 9, 8, 9, 9, 9, 14];
const HEADINGS = ['phase', 'amphora', 'requests', 'failed', 'p50 ms', 'p99 ms', 'reloads', 'push, median'];

interface Phase {
  readonly name: string;
  readonly pushes: readonly Push[];
}

const few = membersTo(FEW);
const phases: readonly Phase[] = [
  { name: 'nothing changes', pushes: [] },
  { name: 'the same text five times', pushes: Array.from({ length: MORE }, () => ({ members: few })) },
  {
    name: `add ${MORE} members, one by one`,
    pushes: Array.from({ length: MORE }, (_, n) => ({ members: membersTo(FEW + n + 1) })),
  },
  {
    name: 'other weights, five times',
    pushes: Array.from({ length: MORE }, (_, n) => ({
      members: membersTo(FEW + MORE).map((member, at) => ({ ...member, weight: 1 + ((at + n) % 4) })),
    })),
  },
  {
    name: 'remove them, one by one',
    pushes: Array.from({ length: MORE }, (_, n) => ({ members: membersTo(FEW + MORE - n - 1) })),
  },
];

process.exitCode = process.env.DEMO_INSIDE === '1' ? await show() : inNamespace();

/** A network and processes that end with the demonstration. */
function inNamespace(): number {
  const missing = process.getuid?.() === 0 ? missingForAmphora() : 'it needs root, for a network namespace';
  if (missing !== '') {
    console.error(`The demonstration cannot run: ${missing}`);
    return 1;
  }
  const words = ['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];
  const self = [process.execPath, fileURLToPath(import.meta.url)];
  const env = { ...process.env, DEMO_INSIDE: '1' };
  return spawnSync('unshare', [...words, ...self], { stdio: 'inherit', env }).status ?? 1;
}

async function show(): Promise<number> {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => void Promise.all([cleanAll(), endAll()]).then(() => process.exit(1)));
  run(['ip', 'link', 'set', 'lo', 'up']);
  const faults: string[] = [];
  await withScratch(async (scratch) => {
    const bench = benchOf(
      process.env,
      () => undefined,
      () => undefined,
    );
    const member = responder(`0.0.0.0:${MEMBER_PORT}`);
    await startHaproxy(scratch, 'member', bench.haproxy, member.body, { globals: member.globals });
    const { headgate, octavia } = await startSides(scratch, bench);
    console.log(`Octavia's own driver pushes one load balancer to two amphorae, which take turns: Headgate, and Octavia's own agent.
Each push is the whole text of HAProxy; only members differ.
`);
    print(HEADINGS, (text) => styleText('bold', text));
    const sides = [headgate, octavia];
    for (const side of sides) await side.push({ members: few });
    const traffic = new Map(sides.map((side) => [side, new DemoTraffic(`http://${side.vip}:${side.port}/`)]));
    for (const each of traffic.values()) await each.without(async () => undefined);
    for (const phase of phases)
      for (const side of sides) {
        const fault = await carryOut(phase, side, traffic.get(side));
        if (side === headgate) faults.push(...fault);
      }
    await endAll();
    console.log('');
    for (const side of sides) {
      const [moved, workers] = [await movedClients(side), await workersLeft(side)];
      console.log(
        `${named(side)}: ${moved} of 20 clients with SOURCE_IP persistence got another member by ten pushes; ${workers} worker${workers === 1 ? '' : 's'} of HAProxy after ten pushes with a long connection each.`,
      );
      if (side === headgate && moved > 0) faults.push(`${moved} clients with persistence moved`);
      if (side === headgate && workers > 1) faults.push(`${workers} workers of HAProxy are left`);
    }
  });
  for (const fault of faults) console.log(styleText(['red', 'bold'], `FAILED: ${fault}`));
  return faults.length === 0 ? 0 : 1;
}

/** The faults. */
async function carryOut(
  phase: Phase,
  side: Side,
  traffic: DemoTraffic | undefined,
): Promise<readonly string[]> {
  await traffic?.report();
  let worker = await side.worker();
  let reloads = 0;
  const took: number[] = [];
  for (const push of phase.pushes) {
    took.push(await side.push(push));
    await delay(BETWEEN_MS);
    const now = await side.worker();
    if (now !== worker) reloads++;
    worker = now;
  }
  if (phase.pushes.length === 0) await delay(2_000);
  const report = await traffic?.report();
  if (report === undefined) return [];
  const { requests, failed, p50, p99 } = report;
  const push = took.length === 0 ? '' : `${median(took).toFixed(0)} ms`;
  const isBad = failed > 0 || reloads > 0;
  print(
    [
      side.name === 'headgate' ? phase.name : '',
      named(side),
      requests.toLocaleString('en'),
      String(failed),
      p50.toFixed(1),
      p99.toFixed(1),
      String(reloads),
      push,
    ],
    isBad ? (text) => styleText('red', text) : (text) => text,
  );
  return [
    ...(failed > 0 ? [`${phase.name}: ${failed} requests failed: ${report.errors.join('; ')}`] : []),
    ...(reloads > 0 ? [`${phase.name}: ${reloads} reloads`] : []),
  ];
}

async function movedClients(side: Side): Promise<number> {
  const clients = Array.from({ length: 20 }, (_, n) => `127.61.0.${1 + n}`);
  await side.push({ members: few, isSticky: true });
  const before = new Map<string, string>();
  for (const client of clients) before.set(client, await answerFor(side, client));
  for (let n = 0; n < PUSHES; n++)
    await side.push({ members: membersTo(n % 2 === 0 ? FEW + 1 : FEW), isSticky: true });
  let moved = 0;
  // A balancer that has forgotten them chooses others in another order.
  for (const client of clients.reverse()) if ((await answerFor(side, client)) !== before.get(client)) moved++;
  return moved;
}

async function workersLeft(side: Side): Promise<number> {
  const open: Socket[] = [];
  for (let n = 0; n < PUSHES; n++) {
    open.push(await longConnection(side));
    await side.push({ members: membersTo(n % 2 === 0 ? FEW + 1 : FEW), isSticky: true });
  }
  await delay(BETWEEN_MS);
  const workers = side.haproxyPids().length - 1; // without the master
  for (const socket of open) socket.destroy();
  return workers;
}

function membersTo(count: number): readonly AmphoraMember[] {
  return Array.from({ length: count }, (_, at) => ({
    id: `51111111-2222-4333-8444-${String(at).padStart(12, '0')}`,
    address: `127.60.0.${1 + at}`,
    port: MEMBER_PORT,
  }));
}

function named({ name }: Side): string {
  return name === 'headgate' ? 'Headgate' : 'Octavia';
}

function print(cells: readonly string[], style: (text: string) => string): void {
  const line = cells.map((cell, at) =>
    at < 2 ? cell.padEnd(WIDTHS[at] ?? 0) : cell.padStart(WIDTHS[at] ?? 0),
  );
  console.log(style(line.join('').trimEnd()));
}
