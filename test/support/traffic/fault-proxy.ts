// A TCP proxy between an agent and its server that makes real faults: connections that are reset, closed, frozen or
// refused, and bytes that come late. Knows nothing of what goes through it.

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
  /** Of both ends. */
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

  /** Resets what is open, as a crash has it; new connections are served. */
  reset(): void {
    for (const [client, upstream] of this.#pairs) {
      client.resetAndDestroy();
      upstream.destroy();
    }
  }

  /** Closes what is open in order, wherever the bytes stand. */
  cut(): void {
    for (const [client, upstream] of this.#pairs) {
      client.end();
      upstream.destroy();
    }
  }

  /** Connections stay open and are taken, but no byte goes through: half-open, as after a lost firewall entry. */
  stall(): void {
    this.#mode = 'stall';
    for (const pair of this.#pairs) for (const socket of pair) socket.pause();
  }

  /** New connections are reset at once. */
  refuse(): void {
    this.#mode = 'refuse';
    this.reset();
  }

  /** All is well again. What has been frozen stays so where `thaw` is false: it belongs to the past. */
  flow({ thaw = true } = {}): void {
    this.#mode = 'flow';
    if (thaw) for (const pair of this.#pairs) for (const socket of pair) socket.resume();
  }

  /** Each chunk comes so many milliseconds later. */
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
