// Keeps connections open, sends requests on each, and counts the connections that stop answering.

import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

export interface Kept {
  readonly connections: number;
  /** Connections on which a request had no answer. */
  readonly cut: number;
}

const REQUEST_INTERVAL_MS = 250;
const REQUEST_TIMEOUT_MS = 5_000;

export class KeptConnections {
  readonly #sockets: readonly Socket[];
  readonly #answered: Promise<readonly boolean[]>;
  #isOver = false;

  /** Resolves when each connection has answered once. */
  static async open(address: string, port: number, count: number): Promise<KeptConnections> {
    const sockets = Array.from({ length: count }, () => connect({ host: address, port, noDelay: true }));
    const answered = await Promise.all(sockets.map(isAnswered));
    if (answered.includes(false)) throw new Error(`${address} port ${port} does not answer`);
    return new KeptConnections(sockets);
  }

  private constructor(sockets: readonly Socket[]) {
    this.#sockets = sockets;
    this.#answered = Promise.all(sockets.map((socket) => this.#keep(socket)));
  }

  async close(): Promise<Kept> {
    this.#isOver = true;
    const answered = await this.#answered;
    for (const socket of this.#sockets) socket.destroy();
    return { connections: answered.length, cut: answered.filter((each) => !each).length };
  }

  /** Whether every request until the end had an answer. */
  async #keep(socket: Socket): Promise<boolean> {
    while (!this.#isOver) {
      await delay(REQUEST_INTERVAL_MS);
      if (!(await isAnswered(socket))) return false;
    }
    return true;
  }
}

/** Sends a request. An answer fits into one segment. */
function isAnswered(socket: Socket): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (hasAnswer: boolean): void => {
      clearTimeout(timer);
      socket.removeAllListeners().on('error', () => undefined);
      resolve(hasAnswer);
    };
    const timer = setTimeout(() => end(false), REQUEST_TIMEOUT_MS);
    socket.once('data', () => end(true)).once('error', () => end(false));
    socket.once('close', () => end(false));
    socket.write('GET / HTTP/1.1\r\nHost: kept\r\n\r\n');
  });
}
