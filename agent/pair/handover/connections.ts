// The connections of clients to VIPs: the arguments of `ss` that list them, and its output as values. Pure.

import { parseAddress } from '../../base/ip.ts';

export interface Connection {
  readonly client: string;
  readonly clientPort: number;
  readonly vip: string;
  readonly port: number;
}

/** For numbers instead of names and no header; without listening sockets and those in TIME-WAIT. */
export const SS_ARGUMENTS: readonly string[] = [
  '-Htn',
  'state',
  'all',
  ...['listening', 'closed', 'time-wait'].flatMap((state) => ['exclude', state]),
];

/** From the output of `ss`. A line: state, two queues, the own address and port, the client's address and port. */
export function connectionsIn(text: string, vips: ReadonlySet<string>): readonly Connection[] {
  const found: Connection[] = [];
  for (const [, own = '', port, other = '', clientPort] of text.matchAll(LINE)) {
    const [vip, client] = [bare(own), bare(other)];
    if (!vips.has(vip) || parseAddress(client) === undefined) continue;
    found.push({ client, clientPort: Number(clientPort), vip, port: Number(port) });
  }
  return found;
}

const LINE = /^\S+\s+\d+\s+\d+\s+(\S+):(\d+)\s+(\S+):(\d+)\s*$/gm;

/** `[fd00::1]` and `10.0.0.1%eth0` as the address alone, and IPv4 of a socket of IPv6 as IPv4. */
function bare(shown: string): string {
  return shown
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/%.*$/, '')
    .replace(/^::ffff:(?=\d+\.)/, '');
}
