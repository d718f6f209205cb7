// A client that opens a connection every 20 ms, on a host of a test's network, and counts answers and failures.

import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { TestNetwork } from '../host/namespaces.ts';

export interface ClientCount {
  readonly answered: number;
  /** Error text to its count. */
  readonly failures: Readonly<Record<string, number>>;
}

const SCRIPT = `
const { connect } = require('node:net');
const [, address, port] = process.argv;
let answered = 0;
const failures = {};
const fail = (text) => { failures[text] = (failures[text] ?? 0) + 1; };
const timer = setInterval(() => {
  const socket = connect({ host: address, port: Number(port), timeout: 5000 });
  let got = '';
  let cause = 'closed without an answer';
  socket.setEncoding('utf8').on('data', (chunk) => { got += chunk; });
  socket.on('error', (error) => { cause = error.code; }).on('timeout', () => { cause = 'silent for 5 s'; socket.destroy(); });
  socket.on('close', () => { if (got !== '') answered++; else fail(cause); });
}, 20);
process.on('SIGTERM', () => {
  clearInterval(timer);
  setTimeout(() => { console.log(JSON.stringify({ answered, failures })); process.exit(); }, 6000);
});
`;

export class SteadyClient {
  readonly #child: ChildProcess;

  constructor(network: TestNetwork, host: string, address: string, port: number) {
    this.#child = network.start(host, process.execPath, '-e', SCRIPT, address, String(port));
  }

  /** Resolves when the open connections have ended. */
  async stop(): Promise<ClientCount> {
    let text = '';
    this.#child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    this.#child.kill('SIGTERM');
    await once(this.#child, 'close');
    return JSON.parse(text);
  }
}
