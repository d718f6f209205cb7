// Traffic for tests: single requests, kept connections, and a load that counts failures. It writes HTTP to sockets, so
// that no library retries a request or reuses a connection.

import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';

export interface Place {
  readonly address: string;
  readonly port: number;
  /** The client's own address. */
  readonly from?: string;
}

/** Sends a request on a new connection; resolves with the answer's body, which is the name of the member. */
export async function ask(place: Place): Promise<string> {
  const client = await Client.connect(place);
  try {
    return await client.ask();
  } finally {
    client.close();
  }
}

/** A connection with one request after the other. */
export class Client {
  /** Resolves when either side has ended the connection. */
  readonly closed: Promise<void>;
  readonly #socket: Socket;
  #text = '';
  #waiting: { resolve: (body: string) => void; reject: (error: Error) => void } | undefined;
  #isOpen = true;

  /** Errors: the connection is not accepted within 5 s. */
  static connect({ address, port, from }: Place): Promise<Client> {
    return new Promise((resolve, reject) => {
      const own = from === undefined ? {} : { localAddress: from };
      const socket = connect({ host: address, port, timeout: 5_000, ...own });
      const fail = (error: Error): void => {
        socket.destroy();
        reject(error);
      };
      socket.once('error', fail);
      socket.once('timeout', () => fail(new Error('Not connected within 5 s')));
      socket.once('connect', () => {
        socket.removeAllListeners().setTimeout(0);
        resolve(new Client(socket));
      });
    });
  }

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding('utf8').setNoDelay();
    socket.on('data', (chunk: string) => this.#receive(chunk));
    let cause = 'closed';
    socket.on('error', ({ message }) => {
      cause = message;
    });
    this.closed = new Promise((resolve) => {
      socket.on('close', () => {
        this.#isOpen = false;
        this.#waiting?.reject(new Error(`The connection ended without an answer: ${cause}`));
        resolve();
      });
    });
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** One request at a time. `last` also ends the sending side. Errors: the connection ends, or no answer within 10 s. */
  async ask({ last = false } = {}): Promise<string> {
    if (!this.#isOpen) throw new Error('The connection was closed before the request');
    const answer = new Promise<string>((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
    const timer = setTimeout(() => this.#waiting?.reject(new Error('No answer within 10 s')), 10_000);
    this.#socket.write('GET / HTTP/1.1\r\nHost: test\r\n\r\n');
    if (last) this.#socket.end();
    try {
      return await answer;
    } finally {
      clearTimeout(timer);
      this.#waiting = undefined;
    }
  }

  close(): void {
    this.#socket.destroy();
  }

  #receive(chunk: string): void {
    this.#text += chunk;
    const [head, length] = /^HTTP\/1\.1 200 .*?content-length: (\d+).*?\r\n\r\n/is.exec(this.#text) ?? [];
    if (head === undefined || this.#text.length < head.length + Number(length)) return;
    const body = this.#text.slice(head.length);
    this.#text = '';
    this.#waiting?.resolve(body);
  }
}

export interface LoadResult {
  readonly requests: number;
  /** Each error of failed requests once, with its number and its first and last time. */
  readonly failures: readonly string[];
  /** Member → number of its answers. */
  readonly answers: ReadonlyMap<string, number>;
  /** Milliseconds of the slowest request, including the connection. */
  readonly slowest: number;
}

/** Each request on a new connection, or all requests of a client on one. */
export type LoadKind = 'new' | 'kept';

/** Milliseconds between two requests of one client, for some hundred requests a second in sum. */
const PAUSE = 5;

export class Load {
  readonly #place: Place;
  readonly #kind: LoadKind;
  readonly #clients: readonly Promise<void>[];
  /** Error → milliseconds since the start of the load. */
  readonly #failures = new Map<string, number[]>();
  readonly #began = performance.now();
  readonly #answers = new Map<string, number>();
  #requests = 0;
  #slowest = 0;
  #inFlight = 0;
  #isPaused = false;
  #isStopped = false;
  #quiet: (() => void) | undefined;

  /** Ends with the test at the latest. */
  constructor(
    t: ExecutionContext<unknown>,
    place: Place,
    { kind = 'new', clients = 3 }: { kind?: LoadKind; clients?: number } = {},
  ) {
    t.teardown(async () => {
      await this.stop();
    });
    this.#place = place;
    this.#kind = kind;
    this.#clients = Array.from({ length: clients }, () => this.#run());
  }

  get requests(): number {
    return this.#requests;
  }

  /** The number of members that have answered so far. */
  get members(): number {
    return this.#answers.size;
  }

  get failures(): readonly string[] {
    return [...this.#failures].map(
      ([text, times]) => `${times.length} x ${text}, from ${times[0]} to ${times.at(-1)} ms`,
    );
  }

  /** Resolves after `count` more answers. */
  async answered(count: number): Promise<void> {
    const goal = this.#requests + count;
    while (this.#requests < goal) await delay(PAUSE);
  }

  /** Runs `action` without an open request. */
  async between(action: () => Promise<void>): Promise<void> {
    this.#isPaused = true;
    if (this.#inFlight > 0) {
      await new Promise<void>((resolve) => {
        this.#quiet = resolve;
      });
    }
    await action();
    this.#isPaused = false;
  }

  async stop(): Promise<LoadResult> {
    this.#isStopped = true;
    await Promise.all(this.#clients);
    return {
      requests: this.#requests,
      failures: this.failures,
      answers: this.#answers,
      slowest: Math.round(this.#slowest),
    };
  }

  #fail(text: string): void {
    const times = this.#failures.get(text) ?? [];
    times.push(Math.round(performance.now() - this.#began));
    this.#failures.set(text, times);
  }

  async #run(): Promise<void> {
    let kept: Client | undefined;
    while (!this.#isStopped) {
      if (!this.#isPaused) {
        this.#inFlight++;
        const began = performance.now();
        try {
          kept ??= await Client.connect(this.#place);
          const member = await kept.ask();
          this.#answers.set(member, (this.#answers.get(member) ?? 0) + 1);
        } catch (error) {
          this.#fail((error as Error).message);
          kept?.close();
          kept = undefined;
        }
        this.#requests++;
        this.#slowest = Math.max(this.#slowest, performance.now() - began);
        if (this.#kind === 'new') {
          kept?.close();
          kept = undefined;
        }
        if (--this.#inFlight === 0) this.#quiet?.();
      }
      await delay(PAUSE);
    }
    kept?.close();
  }
}
