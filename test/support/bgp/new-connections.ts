// A client of the host `client` that opens a connection every 10 ms and gives each half a second: counts answers, and reports how
// long connections that were opened have failed.

import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { TestNetwork } from '../host/namespaces.ts';

const SCRIPT = `
const { connect } = require('node:net');
const [address, port] = process.argv.slice(1);
let answered = 0;
const failures = {};
let first = 0;
let last = 0;
const timer = setInterval(() => {
  const began = performance.now();
  const socket = connect({ host: address, port: Number(port) });
  let got = '';
  let cause = 'closed without an answer';
  const late = setTimeout(() => { cause = 'silent'; socket.destroy(); }, 500);
  socket.setEncoding('utf8').on('data', (chunk) => { got += chunk; });
  socket.on('error', (error) => { cause = error.code; });
  socket.on('close', () => {
    clearTimeout(late);
    if (got !== '') { answered++; return; }
    failures[cause] = (failures[cause] ?? 0) + 1;
    first ||= began;
    last = Math.max(last, began);
  });
}, 10);
process.on('SIGTERM', () => {
  clearInterval(timer);
  setTimeout(() => { console.log(JSON.stringify({ answered, failures, outageMs: Math.round(last - first) })); process.exit(); }, 700);
});
console.log('');
`;

export interface NewCount {
  readonly answered: number;
  /** Why → how many. */
  readonly failures: Readonly<Record<string, number>>;
  /** From the first to the last connection that failed. */
  readonly outageMs: number;
}

export class NewConnections {
  readonly #child: ChildProcess;
  #text = '';

  private constructor(child: ChildProcess) {
    this.#child = child;
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      this.#text += chunk;
    });
  }

  static async open(network: TestNetwork, address: string, port: number): Promise<NewConnections> {
    const opened = new NewConnections(
      network.start('client', process.execPath, '-e', SCRIPT, address, String(port)),
    );
    if (opened.#child.stdout !== null) await once(opened.#child.stdout, 'data');
    return opened;
  }

  /** Resolves when the last connections have ended. */
  async stop(): Promise<NewCount> {
    this.#child.kill('SIGTERM');
    await once(this.#child, 'close');
    return JSON.parse(this.#text) as NewCount;
  }
}
