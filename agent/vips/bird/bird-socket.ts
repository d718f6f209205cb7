// A connection to BIRD's socket: sends one command after the other and resolves with the reply. Opens a connection when it
// needs one; a command that fails closes it.

import { connect, type Socket } from 'node:net';
import { systemClock } from '../../base/clock.ts';
import { HeadgateError } from '../../base/errors.ts';
import { serial } from '../../base/serial.ts';
import { isRefusal, type Reply, ReplyReader } from './replies.ts';

const TIMEOUT_MS = 5_000;

export class BirdSocket {
  readonly #path: string;
  readonly #isRestricted: boolean;
  readonly #turns = serial();
  #connection: Connection | undefined;

  /** `isRestricted`: BIRD refuses every command of it that changes anything. */
  constructor(path: string, { isRestricted }: { readonly isRestricted: boolean }) {
    this.#path = path;
    this.#isRestricted = isRestricted;
  }

  /** Errors: BIRD_SOCKET if BIRD cannot be reached, does not answer in time, or refuses the command. */
  ask(command: string): Promise<Reply> {
    return this.#turns.run(async () => {
      try {
        const reply = await (await this.#opened()).ask(command);
        if (!isRefusal(reply)) return reply;
        const why = reply.lines.at(-1) ?? `code ${reply.code}`;
        throw new HeadgateError('BIRD_SOCKET', `BIRD refuses "${command}": ${why}`, { retry: 'later' });
      } catch (cause) {
        this.close();
        if (cause instanceof HeadgateError) throw cause;
        throw new HeadgateError('BIRD_SOCKET', `BIRD does not answer "${command}"`, {
          retry: 'later',
          cause,
        });
      }
    });
  }

  /** The next command opens it again. */
  close(): void {
    this.#connection?.close();
    this.#connection = undefined;
  }

  async #opened(): Promise<Connection> {
    if (this.#connection?.isOpen) return this.#connection;
    const connection = new Connection(connect(this.#path));
    this.#connection = connection;
    await connection.reply(); // the greeting
    if (this.#isRestricted) await connection.ask('restrict');
    return connection;
  }
}

class Connection {
  readonly #socket: Socket;
  readonly #reader = new ReplyReader();
  readonly #replies: Reply[] = [];
  #failure: Error | undefined;
  #wake: () => void = () => undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding('utf8');
    socket.on('data', (chunk: string) => {
      try {
        this.#replies.push(...this.#reader.take(chunk));
      } catch (error) {
        this.#fail(error as Error);
      }
      this.#wake();
    });
    socket.on('error', (error) => this.#fail(error));
    socket.on('close', () => this.#fail(new Error('BIRD has closed the connection')));
    socket.unref();
  }

  get isOpen(): boolean {
    return this.#failure === undefined;
  }

  ask(command: string): Promise<Reply> {
    this.#socket.write(`${command}\n`);
    return this.reply();
  }

  /** The next reply. */
  async reply(): Promise<Reply> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const cancel = systemClock.after(TIMEOUT_MS, () => reject(new Error(`no reply within ${TIMEOUT_MS} ms`)));
    try {
      for (;;) {
        const reply = this.#replies.shift();
        if (reply !== undefined) return reply;
        if (this.#failure !== undefined) throw this.#failure;
        const { promise: news, resolve } = Promise.withResolvers<void>();
        this.#wake = resolve;
        await Promise.race([news, late]);
      }
    } finally {
      cancel();
      late.catch(() => undefined);
    }
  }

  close(): void {
    this.#socket.destroy();
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#wake();
  }
}
