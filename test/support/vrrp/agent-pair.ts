// Two agents, each with HAProxy and keepalived in its own network namespace, a client, and a member that answers with
// `member`.

import { once } from 'node:events';
import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import type { OrderOutcome } from '../../../agent/pair/orders/orders.ts';
import type { PairStatus } from '../../../agent/pair/pair.ts';
import { type RunningAgent, TestHost } from '../host/agent.ts';
import { TestNetwork } from '../host/namespaces.ts';
import { MEMBER_PORT } from '../values/service-objects.ts';
import { keepalivedFlags } from './keepalived.ts';
import { makeCredentials } from './pair-credentials.ts';

export const INSTANCE = 'vrrp-51';

export interface Side {
  readonly name: string;
  readonly host: TestHost;
  readonly agent: RunningAgent;
  /** Changes the setting vrrp in the host's settings file and sends SIGHUP to its agent. */
  readonly configure: (change: Readonly<Record<string, unknown>>) => Promise<void>;
}

export interface AgentPair {
  readonly active: Side;
  readonly standby: Side;
  readonly network: TestNetwork;
  /** The roles of `active` and `standby`, which are named after their roles at the start. */
  readonly roles: () => Promise<string>;
}

export interface AgentPairOptions {
  /** Gives a host its objects, or another program, before its agent starts. */
  readonly prepare?: (host: TestHost, network: TestNetwork) => Promise<void>;
  /** For both agents. */
  readonly flags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Additional fields of the setting vrrp, for both hosts. */
  readonly vrrp?: {
    readonly a: Readonly<Record<string, unknown>>;
    readonly b: Readonly<Record<string, unknown>>;
  };
  /** New Services land, as by default; see HostOptions. */
  readonly landing?: boolean;
  /** Whether the client is served at the VIP; by default a member of this file answers. */
  readonly isServed?: (network: TestNetwork) => Promise<boolean>;
  /** The file with the key of advertisements, by host; '' for none. */
  readonly vrrpKey?: (host: TestHost) => string;
  /** Additional hosts of the network. */
  readonly others?: readonly string[];
}

/** Resolves when both agents run and match, and the client is served at `vip`. */
export async function startAgentPair(
  t: ExecutionContext<unknown>,
  vip: string,
  {
    prepare = async () => undefined,
    flags: common = [],
    env = {},
    vrrp: own = { a: {}, b: {} },
    landing = false,
    isServed = async (own) => (await own.whoServes(vip)) === 'member',
    others = [],
    vrrpKey,
  }: AgentPairOptions,
): Promise<AgentPair> {
  const network = await TestNetwork.create(t, ['a', 'b', 'client', ...others]);
  const script = `require('net').createServer((socket) => socket.on('error', () => 0).end('member')).listen(${MEMBER_PORT}, () => console.log())`;
  const member = network.start('client', process.execPath, '-e', script);
  if (member.stdout !== null) await once(member.stdout, 'data');
  const settings: Record<string, Side['configure']> = {};
  const flags: Record<string, string[]> = { a: [...common], b: [...common] };
  const a = await TestHost.create(t, { flags: flags.a ?? [], env, landing });
  const b = await TestHost.create(t, { flags: flags.b ?? [], env, landing });
  // A program with a host's folder on its command line belongs to that host.
  const credentials: Record<string, string> = { a: await makeCredentials(a.directory) };
  credentials.b = join(b.directory, 'pair.pem');
  await copyFile(credentials.a ?? '', credentials.b);
  // The agents are connected outside the network that the tests cut.
  const addresses: Record<string, string> = { a: a.address(201), b: a.address(202) };
  for (const [name, peer] of [
    ['a', 'b'],
    ['b', 'a'],
  ] as const) {
    const vrrp = {
      interface: 'eth0',
      address: network.v4(name),
      peers: [network.v4(peer)],
      virtualRouterId: 51,
      anchors: ['10.9.0.1'],
      // On a busy machine keepalived may wait for the processor for longer than three default intervals.
      advertInterval: '500ms',
      ...own[name],
    };
    const file = join((name === 'a' ? a : b).directory, 'headgate.yaml');
    settings[name] = (change) => writeFile(file, JSON.stringify({ vrrp: { ...vrrp, ...change } }));
    flags[name]?.push(
      ...['--config', file, '--netns', network.netns(name), '--pair-credentials', credentials[name] ?? ''],
      ...['--pair-address', addresses[name] ?? '', '--pair-peer', addresses[peer] ?? ''],
      ...['--pair-lower-after', '2s', '--pair-raise-after', '1s', '--haproxy-user=', '--haproxy-group='],
      ...keepalivedFlags,
    );
  }
  const sides: Side[] = [];
  for (const [name, host] of [
    ['a', a],
    ['b', b],
  ] as const) {
    const configure = settings[name] ?? (async () => undefined);
    await configure({});
    await prepare(host, network);
    if (vrrpKey !== undefined) flags[name]?.push('--vrrp-key', vrrpKey(host));
    const agent = await host.start();
    t.teardown(async () => {
      await agent.stop();
    });
    sides.push({ name, host, agent, configure });
  }
  await areAlike(sides.map(({ host }) => host));
  await a.until('traffic flows', () => isServed(network));
  const [first, second] = sides as [Side, Side];
  const isFirst = (await roleOf(first.host)) === 'master';
  const [active, standby] = isFirst ? [first, second] : [second, first];
  const roles = async () => `${await roleOf(active.host)},${await roleOf(standby.host)}`;
  await a.until('one is master, the other is not', async () => (await roles()) === 'master,backup');
  return { active, standby, network, roles };
}

/** For new listeners that land first, a reload and the peer's report on it. */
const ALIKE_MS = 60_000;

/** Waits until each host could take over from the other. */
export async function areAlike(hosts: readonly TestHost[]): Promise<void> {
  for (const host of hosts)
    await host.until(
      'they are alike',
      async () => {
        const { peerNotReady, lowered, fault } = await pairOf(host);
        // A host that has handed over reports that while the other host is master and well.
        const isAlike =
          peerNotReady === '' && fault === '' && lowered.every(({ reason }) => reason === 'failover');
        if (!isAlike) throw new Error(JSON.stringify({ peerNotReady, lowered, fault }));
        return true;
      },
      ALIKE_MS,
    );
}

export async function pairOf(host: TestHost): Promise<PairStatus> {
  const { pair } = await host.status();
  if (pair === undefined) throw new Error('It has no peer');
  return pair;
}

export async function roleOf(host: TestHost): Promise<string> {
  return (await pairOf(host)).roles[INSTANCE] ?? '';
}

/** A command's outcome, with its exit status. */
export async function order(
  host: TestHost,
  name: string,
  ...args: readonly string[]
): Promise<OrderOutcome & { readonly status: number | null }> {
  const { status, stdout, stderr } = await host.command(name, [...args, '--json']);
  if (stdout === '') throw new Error(`headgate ${name}: ${stderr}`);
  return { status, ...(JSON.parse(stdout) as OrderOutcome) };
}
