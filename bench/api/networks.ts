// The two networks of a benchmark with a real API server. The network of this process (isolated.ts) has the API server,
// the agent and the lower bound; a second one has kube-proxy, whose rules must not process the others' packets. In both,
// one HAProxy answers at every pod address with that address.

import { spawnSync } from 'node:child_process';
import { readlinkSync } from 'node:fs';
import { beforeOthers } from '../support/client-start.ts';
import { responder, startHaproxy } from '../support/haproxy.ts';
import { start } from '../support/processes.ts';
import type { Scratch } from '../support/scratch.ts';
import { until } from '../support/until.ts';

export const MEMBER_PORT = 9000;

/** In 10.128.0.0/9. */
export function podAddress(n: number): string {
  return `10.${128 + ((n >> 16) & 127)}.${(n >> 8) & 255}.${n & 255}`;
}

/** Cluster IPs are local too: a connection without a rule for its address is refused at once. */
const PREPARE = `ip link set lo up &&
  ip address replace 10.255.255.1/32 dev lo &&
  ip route replace local 10.0.0.0/8 dev lo src 10.255.255.1 &&
  ip route replace default dev lo src 10.255.255.1`;

const RELAY = 'mode tcp\n    timeout client 1h\n    timeout server 1h';

/** `within` is a command that executes the words after it in another network; empty for this network. */
function prepare(within: readonly string[] = []): void {
  const [program = 'sh', ...args] = [...within, 'sh', '-c', PREPARE];
  const { status, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`Cannot prepare the network: ${stderr}`);
}

export interface Networks {
  /** Makes the second network, with the API server at the same address. It ends with its scratch. */
  readonly other: (scratch: Scratch) => Promise<OtherNetwork>;
}

export interface OtherNetwork {
  /** A command that executes the words after it in the second network. */
  readonly within: readonly string[];
}

/** Prepares the network of this process, starts the API server and then the members. */
export async function startNetworks<T extends { readonly url: string }>(
  scratch: Scratch,
  haproxy: string,
  startApi: () => Promise<T>,
): Promise<{ readonly api: T; readonly networks: Networks }> {
  prepare();
  const api = await startApi();
  const { host } = new URL(api.url);
  const { body, globals } = responder(`0.0.0.0:${MEMBER_PORT}`);
  // The networks meet only at a unix socket, so that no packet passes between them.
  const meeting = `unix@${scratch.path('api.sock')}`;
  const out = `\nlisten out\n    ${RELAY}\n    bind ${meeting}\n    server api ${host}\n`;
  await startHaproxy(scratch, 'members', haproxy, body + out, { globals, within: beforeOthers() });
  return { api, networks: { other: (scratch) => startOther(scratch, haproxy, host, meeting) } };
}

async function startOther(
  scratch: Scratch,
  haproxy: string,
  host: string,
  meeting: string,
): Promise<OtherNetwork> {
  const own = readlinkSync('/proc/self/ns/net');
  const holder = start(scratch, 'network', 'unshare', ['--net', 'sleep', 'infinity']);
  const file = `/proc/${holder.pid}/ns/net`;
  await until('The second network exists', () => readlinkSync(file) !== own);
  const within = ['nsenter', `--net=${file}`];
  prepare(within);
  const into = `\nlisten into\n    ${RELAY}\n    bind ${host}\n    server api ${meeting}\n`;
  // On an IPv6 socket HAProxy reads the address after kube-proxy's translation, not the cluster IP.
  const { body, globals } = responder(`:::${MEMBER_PORT} v4v6`);
  const before = [...within, ...beforeOthers()];
  await startHaproxy(scratch, 'other-members', haproxy, body + into, { globals, within: before });
  return { within };
}
