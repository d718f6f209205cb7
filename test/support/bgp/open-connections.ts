// Connections of the host `client` that stay open: each sends a byte several times a second and gets it back. Tells how many have
// ended, or have got no answer.

import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { TestNetwork } from '../host/namespaces.ts';
import { MEMBER_PORT } from '../values/service-objects.ts';

const SCRIPT = `
const net = require('net');
const [address, port, count, from] = process.argv.slice(1);
const all = [];
for (let at = 0; at < Number(count); at++) {
  const each = { broken: '', heard: 0, port: 0, socket: net.connect({ host: address, port: Number(port), ...(from > 0 && { localPort: Number(from) + at }) }) };
  all.push(each);
  each.socket.setNoDelay(true);
  each.socket.on('connect', () => { each.port = each.socket.localPort; });
  each.socket.on('data', () => { each.heard = Date.now(); });
  each.socket.on('error', (error) => { each.broken ||= error.code; });
  each.socket.on('close', () => { each.broken ||= 'closed'; });
}
setInterval(() => { for (const { broken, socket } of all) if (!broken) socket.write('x'); }, 200);
process.stdin.on('data', () => {
  const now = Date.now();
  const open = all.filter(({ broken }) => !broken);
  console.log(JSON.stringify({ answered: open.filter(({ heard }) => now - heard < 2500).length, open: open.length,
    broken: all.flatMap(({ broken }) => broken || []) }));
});
`;

export interface OpenCount {
  /** Open, with an answer in the last moments. */
  readonly answered: number;
  readonly open: number;
  /** Why each of the others has ended. */
  readonly broken: readonly string[];
}

export class OpenConnections {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  /** `from`: the client's first port; 0: any. */
  constructor(network: TestNetwork, address: string, port: number, count = 300, from = 0) {
    const words = ['-e', SCRIPT, address, String(port), String(count), String(from)];
    this.#child = network.start('client', process.execPath, ...words);
    if (this.#child.stdout === null) throw new Error('It has no output');
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  async count(): Promise<OpenCount> {
    this.#child.stdin?.write('?\n');
    return JSON.parse((await this.#lines.next()).value) as OpenCount;
  }
}

const CLOSED = `
const [address, port, count, from] = process.argv.slice(1);
const one = (localPort) => new Promise((resolve) => {
  const socket = require('net').connect({ host: address, port: Number(port), localPort }, () => socket.write('q'));
  socket.on('error', () => 0).on('close', resolve).resume();
});
Promise.all(Array.from({ length: Number(count) }, (_, at) => one(Number(from) + at)));
`;

/** Connections from these ports of the client that the member closes. */
export async function closedConnections(
  network: TestNetwork,
  address: string,
  port: number,
  { count, from }: { readonly count: number; readonly from: number },
): Promise<void> {
  await network.run('client', process.execPath, '-e', CLOSED, ...[address, port, count, from].map(String));
}

/** A member on a host that sends back what it gets, and closes after a `q`. */
export async function echoMember(network: TestNetwork, host: string): Promise<void> {
  const script = `require('net').createServer((socket) => socket.on('error', () => 0).on('data', (data) => (data.includes('q') ? socket.end() : socket.write(data)))).listen(${MEMBER_PORT}, () => console.log())`;
  const child = network.start(host, process.execPath, '-e', script);
  if (child.stdout !== null) await once(child.stdout, 'data');
}
