// Flows of UDP from the host `client`, each from a port of its own: each sends a packet several times a second and gets it back.

import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { TestNetwork } from '../host/namespaces.ts';
import { MEMBER_PORT } from '../values/service-objects.ts';

const SCRIPT = `
const [address, port, count] = process.argv.slice(1);
const all = Array.from({ length: Number(count) }, () => {
  const each = { heard: 0, socket: require('dgram').createSocket(address.includes(':') ? 'udp6' : 'udp4') };
  each.socket.on('message', () => { each.heard = Date.now(); }).on('error', () => 0).connect(Number(port), address);
  return each;
});
setInterval(() => { for (const { socket } of all) try { socket.send('x', () => 0); } catch {} }, 200);
process.stdin.on('data', () => console.log(all.filter(({ heard }) => Date.now() - heard < 2500).length));
`;

export class OpenFlows {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  constructor(network: TestNetwork, address: string, port: number, count: number) {
    this.#child = network.start(
      'client',
      process.execPath,
      '-e',
      SCRIPT,
      address,
      String(port),
      String(count),
    );
    if (this.#child.stdout === null) throw new Error('It has no output');
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  /** How many had an answer in the last moments. */
  async answered(): Promise<number> {
    this.#child.stdin?.write('?\n');
    return Number((await this.#lines.next()).value);
  }
}

/** A member on a host that sends packets of UDP back. */
export async function echoFlows(network: TestNetwork, host: string): Promise<void> {
  const script = `const socket = require('dgram').createSocket('udp6');
socket.on('message', (data, { address, port }) => socket.send(data, port, address)).bind(${MEMBER_PORT}, () => console.log())`;
  const child = network.start(host, process.execPath, '-e', script);
  if (child.stdout !== null) await once(child.stdout, 'data');
}
