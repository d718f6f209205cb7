// `make demo-bgp` (root): three hosts announce a VIP to a router by BGP; under load one goes into maintenance and comes back, a
// fourth joins, one loses its power, and the table says what clients saw. Processes, networks and files are in namespaces that
// end with the demonstration, whatever ends it. The status is other than 0 if a promise is broken.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { styleText } from 'node:util';
import { type DemoHosts, PORT, startDemoHosts, VIP } from '../bench/bgp/demo-hosts.ts';
import { run } from '../bench/pair/network.ts';
import { type Scratch, withScratch } from '../bench/support/scratch.ts';
import type { ClientOrder, ClientReport } from './demo-bgp-client.ts';
import { PATH } from './demo-path.ts';
import { nextMessage, start } from './demo-processes.ts';

interface Act {
  readonly name: string;
  /** Milliseconds during which new connections may fail. */
  readonly mostMs: number;
  /** The host whose connections may break. */
  readonly dies?: string;
  readonly play: (hosts: DemoHosts) => Promise<void>;
}

process.env.PATH = PATH;
const NAMES = ['lb1', 'lb2', 'lb3'];
const LATER = 'lb4';
/** After each act: a connection whose packets are lost would be silent. */
const SETTLE_MS = 2_000;
/** BFD finds a dead host after 0.3 s. */
const CRASH_MOST_MS = 500;
const WIDTHS = [30, 8, 9, 9, 13, 9];
const HEADINGS = ['act', 'new', 'failed', 'for', 'established', 'broken'];

const acts: readonly Act[] = [
  { name: 'nothing changes', mostMs: 0, play: async () => undefined },
  { name: 'lb2 goes into maintenance', mostMs: 0, play: (hosts) => hosts.maintain('lb2', true) },
  {
    name: 'lb2 comes back',
    mostMs: 0,
    play: async (hosts) => {
      await hosts.maintain('lb2', false);
      await hosts.settled(...NAMES);
    },
  },
  {
    name: 'lb4 joins',
    mostMs: 0,
    play: async (hosts) => {
      await hosts.join();
      await hosts.settled(...NAMES, LATER);
    },
  },
  {
    name: 'lb3 loses its power',
    mostMs: CRASH_MOST_MS,
    dies: 'lb3',
    play: async (hosts) => {
      await delay(300);
      await hosts.cut('lb3');
    },
  },
];

process.exitCode = process.env.DEMO_INSIDE === '1' ? await show() : await inNamespaces();

/** Processes, networks and the files of /run that end with the demonstration. */
async function inNamespaces(): Promise<number> {
  const missing = whatIsMissing();
  if (missing !== '') {
    console.error(`The demonstration cannot run: ${missing}`);
    return 1;
  }
  const words = ['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];
  const self = [process.execPath, fileURLToPath(import.meta.url)];
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', 'unshare', ...words, ...self], {
    stdio: 'inherit',
    env: { ...process.env, DEMO_INSIDE: '1', TMPDIR: '/run' },
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => child.kill('SIGKILL'));
  const [status] = await once(child, 'exit');
  return typeof status === 'number' ? status : 1;
}

function whatIsMissing(): string {
  if (process.getuid?.() !== 0) return 'it needs root, for network namespaces';
  const lacking = [
    ['haproxy', '-v'],
    ['bird', '--version'],
    ['nft', '--version'],
  ].filter(([program = '', flag = '']) => spawnSync(program, [flag]).error !== undefined);
  return lacking.map(([program]) => `${program} is not installed`).join(', ');
}

async function show(): Promise<number> {
  // The first process of a namespace ends only at signals that it handles; all others end with it.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));
  run(['mount', '-t', 'tmpfs', '-o', 'mode=755', 'tmpfs', '/run']);
  run(['ip', 'link', 'set', 'lo', 'up']);
  console.log(`A router spreads the connections of one VIP over three hosts, each with an agent, HAProxy and BIRD.
A client opens a connection every 10 ms and keeps 200 open.
`);
  return withScratch(async (scratch) => {
    const status = await playAll(scratch).catch((error: unknown) => {
      console.error(error);
      return 1;
    });
    // Nothing needs to be ended in order: all of it ends with this process.
    process.exit(status);
  });
}

async function playAll(scratch: Scratch): Promise<number> {
  const faults: string[] = [];
  const hosts = await startDemoHosts(scratch, NAMES, LATER);
  await hosts.settled(...NAMES);
  const client = startClient(hosts);
  print(HEADINGS, (text) => styleText('bold', text));
  for (const act of acts) faults.push(...(await carryOut(act, hosts, client)));
  console.log(`
Established connections go on over the network between the hosts; only those of a host that dies end with it.
"for": from the first to the last connection without an answer within 0.7 s; BFD needs 0.3 s to find a dead host.`);
  for (const fault of faults) console.log(styleText(['red', 'bold'], `FAILED: ${fault}`));
  return faults.length === 0 ? 0 : 1;
}

type Client = (order: ClientOrder) => Promise<unknown>;

function startClient({ client }: DemoHosts): Client {
  const file = fileURLToPath(new URL('demo-bgp-client.ts', import.meta.url));
  const words = [`--net=/run/netns/${client}`, process.execPath, file, VIP, String(PORT)];
  const child = start('nsenter', words, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  return (order) => {
    const answer = nextMessage(child, 'The client');
    child.send(order);
    return answer;
  };
}

/** The broken promises. */
async function carryOut(
  { name, mostMs, dies, play }: Act,
  hosts: DemoHosts,
  client: Client,
): Promise<readonly string[]> {
  await client('keep');
  const own = dies === undefined ? 0 : await hosts.connectionsOf(dies);
  await client('visit');
  await play(hosts);
  await delay(SETTLE_MS);
  const { opened, failed, during, kept, broken, causes } = (await client('report')) as ClientReport;
  const why = causes.length === 0 ? '' : `: ${causes.join(', ')}`;
  const faults = [
    ...(mostMs === 0 && failed > 0 ? [`${name}: ${failed} of ${opened} new connections failed${why}`] : []),
    ...(mostMs > 0 && during > mostMs
      ? [`${name}: new connections failed for ${during.toFixed(0)} ms, more than ${mostMs} ms${why}`]
      : []),
    ...(broken > own
      ? [`${name}: ${broken} of ${kept} established connections broke, but at most ${own} may${why}`]
      : []),
  ];
  const lasted = failed === 0 ? '' : `${(during / 1_000).toFixed(2)} s`;
  print(
    [name, opened.toLocaleString('en'), String(failed), lasted, String(kept), String(broken)],
    faults.length > 0 ? (text) => styleText('red', text) : (text) => text,
  );
  return faults;
}

function print(cells: readonly string[], style: (text: string) => string): void {
  const line = cells.map((cell, at) =>
    at === 0 ? cell.padEnd(WIDTHS[at] ?? 0) : cell.padStart(WIDTHS[at] ?? 0),
  );
  console.log(style(line.join('').trimEnd()));
}
