// Connections that a client keeps: on each it asks again and again, and hears whether it is answered still.

import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

export interface Kept {
  readonly connections: number;
  /** Of these, those on which a question was not answered. */
  readonly cut: number;
}

/** Milliseconds between two questions, and for an answer. */
const EVERY = 250;
const PATIENCE = 5_000;

export class KeptConnections {
  readonly #sockets: readonly Socket[];
  readonly #asking: Promise<readonly boolean[]>;
  #isOver = false;

  /** Each has been answered once. */
  static async open(address: string, port: number, count: number): Promise<KeptConnections> {
    const sockets = Array.from({ length: count }, () => connect({ host: address, port, noDelay: true }));
    const answered = await Promise.all(sockets.map(ask));
    if (answered.includes(false)) throw new Error(`${address} port ${port} does not answer`);
    return new KeptConnections(sockets);
  }

  private constructor(sockets: readonly Socket[]) {
    this.#sockets = sockets;
    this.#asking = Promise.all(sockets.map((socket) => this.#keep(socket)));
  }

  async close(): Promise<Kept> {
    this.#isOver = true;
    const answered = await this.#asking;
    for (const socket of this.#sockets) socket.destroy();
    return { connections: answered.length, cut: answered.filter((each) => !each).length };
  }

  /** Whether it was answered to the end. */
  async #keep(socket: Socket): Promise<boolean> {
    while (!this.#isOver) {
      await delay(EVERY);
      if (!(await ask(socket))) return false;
    }
    return true;
  }
}

/** Whether a question is answered. An answer is short enough for one segment. */
function ask(socket: Socket): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (isAnswered: boolean): void => {
      clearTimeout(timer);
      socket.removeAllListeners().on('error', () => undefined);
      resolve(isAnswered);
    };
    const timer = setTimeout(() => end(false), PATIENCE);
    socket.once('data', () => end(true)).once('error', () => end(false));
    socket.once('close', () => end(false));
    socket.write('GET / HTTP/1.1\r\nHost: kept\r\n\r\n');
  });
}
