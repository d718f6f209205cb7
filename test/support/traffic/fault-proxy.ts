// A TCP proxy between an agent and its server that causes real faults: reset, closed, frozen and refused connections, and
// delayed bytes.

import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

export interface ProxyTarget {
  readonly host: string;
  readonly port: number;
}

type Mode = 'flow' | 'stall' | 'refuse';

export class FaultProxy {
  readonly port: number;
  readonly #target: ProxyTarget;
  readonly #server: Server;
  /** The sockets of both sides. */
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #mode: Mode = 'flow';
  #delay = 0;
  /** Connections accepted so far. */
  accepted = 0;

  private constructor(server: Server, target: ProxyTarget) {
    this.#server = server;
    this.#target = target;
    this.port = (server.address() as { port: number }).port;
    server.on('connection', (client) => this.#accept(client));
  }

  static async start(target: ProxyTarget): Promise<FaultProxy> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new FaultProxy(server, target);
  }

  get connections(): number {
    return this.#pairs.size;
  }

  /** Resets open connections, like a crash; accepts new connections. */
  reset(): void {
    for (const [client, upstream] of this.#pairs) {
      client.resetAndDestroy();
      upstream.destroy();
    }
  }

  /** Closes open connections gracefully, even in the middle of a message. */
  cut(): void {
    for (const [client, upstream] of this.#pairs) {
      client.end();
      upstream.destroy();
    }
  }

  /** Keeps and accepts connections but forwards no byte, as after a lost firewall entry. */
  stall(): void {
    this.#mode = 'stall';
    for (const pair of this.#pairs) for (const socket of pair) socket.pause();
  }

  /** Resets new connections at once. */
  refuse(): void {
    this.#mode = 'refuse';
    this.reset();
  }

  /** Ends the fault. Frozen connections stay frozen if `thaw` is false. */
  flow({ thaw = true } = {}): void {
    this.#mode = 'flow';
    if (thaw) for (const pair of this.#pairs) for (const socket of pair) socket.resume();
  }

  /** Delays each chunk by this many milliseconds. */
  delay(milliseconds: number): void {
    this.#delay = milliseconds;
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy();
    await closed;
  }

  #accept(client: Socket): void {
    this.accepted++;
    client.on('error', () => undefined);
    if (this.#mode === 'refuse') {
      client.resetAndDestroy();
      return;
    }
    const upstream = connect(this.#target);
    const pair = [client, upstream] as const;
    this.#pairs.add(pair);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      from.setNoDelay(true);
      from.on('error', () => to.destroy());
      from.on('data', (bytes) => this.#pass(bytes, to));
      from.on('end', () => to.end());
      from.on('close', () => {
        this.#pairs.delete(pair);
        to.destroy();
      });
      if (this.#mode === 'stall') from.pause();
    }
  }

  #pass(bytes: Buffer, to: Socket): void {
    if (this.#delay === 0) to.write(bytes);
    else setTimeout(() => to.writable && to.write(bytes), this.#delay);
  }
}
