// Receives the reports of other agents: listens on this host's address, and accepts connections from the addresses of its
// peers, one in a pair, with a trusted certificate (TLS 1.3, both sides).

import { createServer, type Server, type Socket } from 'node:net';
import type { Server as TlsServer } from 'node:tls';
import { type Clock, systemClock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { Fault } from '../../base/fault.ts';
import type { Log } from '../../host/log.ts';
import { tls } from '../../host/node-http.ts';
import { type PairCredentials, tlsOptions } from './credentials.ts';
import { HeardPeer, type PeerTimeouts, type Refusal } from './heard-peer.ts';
import type { PairReport } from './report.ts';

export interface EndPoint {
  readonly address: string;
  readonly port: number;
}

export interface PeerListenerOptions {
  readonly own: EndPoint;
  /** Their addresses. */
  readonly peers: readonly string[];
  readonly credentials: PairCredentials;
  readonly timeouts: PeerTimeouts;
  readonly hooks: PeerListenerHooks;
  readonly log: Log;
  readonly clock?: Clock;
}

export interface PeerListenerHooks {
  /** It listens: the address is this host's. */
  readonly onListening: () => Promise<void>;
  /** A report of the peer has come, or its last one is too old. */
  readonly onPeer: (address: string) => void;
  readonly onRefused: (why: Refusal) => void;
}

const LISTEN_RETRY_DELAY_MS = 1_000;

export class PeerListener {
  readonly #options: PeerListenerOptions;
  readonly #clock: Clock;
  readonly #sockets = new Set<Socket>();
  /** By address. */
  readonly #peers: ReadonlyMap<string | undefined, HeardPeer>;
  /** Accepts connections by their address, and passes them to the TLS server. */
  #server: Server | undefined;
  readonly #tlsServer: TlsServer;
  #cancelRetry: (() => void) | undefined;
  readonly #fault = new Fault();
  #closed = false;

  constructor(options: PeerListenerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#peers = new Map(options.peers.map((address) => [address, this.#newPeer(address)]));
    this.#tlsServer = this.#newTlsServer(options.credentials);
  }

  get isListening(): boolean {
    return this.#server !== undefined;
  }

  /** The last report of the peer at this address; undefined if it is too old. */
  reportOf(address: string): PairReport | undefined {
    return this.#peers.get(address)?.report;
  }

  /** Why no peer can connect; '' if it can. */
  get fault(): string {
    return this.#fault.text;
  }

  /** Resolves after the first attempt to listen; if it fails, more follow. */
  async start(): Promise<void> {
    const { own, log } = this.#options;
    const server = this.#newServer();
    const error = await listening(server, own);
    if (this.#closed) {
      server.close();
      return;
    }
    if (error !== undefined) {
      const isNews = this.#fault.set(`Cannot listen on ${own.address} port ${own.port}: ${messageOf(error)}`);
      if (isNews) log.error(this.#fault.text);
      this.#cancelRetry = this.#clock.after(LISTEN_RETRY_DELAY_MS, () => void this.start());
      return;
    }
    this.#fault.clear();
    this.#server = server;
    await this.#options.hooks.onListening();
  }

  /** For new connections; open ones stay until they end. */
  renew(credentials: PairCredentials): void {
    this.#tlsServer.setSecureContext(tlsOptions(credentials));
  }

  close(): void {
    this.#closed = true;
    this.#cancelRetry?.();
    for (const peer of this.#peers.values()) peer.close();
    this.#server?.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #newServer(): Server {
    return createServer((socket) => {
      this.#sockets.add(socket);
      socket.on('error', () => undefined).once('close', () => this.#sockets.delete(socket));
      const peer = this.#peers.get(socket.remoteAddress);
      if (peer !== undefined) {
        peer.handshakeBegins(socket);
        this.#tlsServer.emit('connection', socket);
        return;
      }
      this.#refuse('address', `from ${socket.remoteAddress}`);
      socket.destroy();
    });
  }

  #newTlsServer(credentials: PairCredentials): TlsServer {
    const server = tls().createServer({
      ...tlsOptions(credentials),
      requestCert: true,
      rejectUnauthorized: true,
      handshakeTimeout: this.#options.timeouts.connection,
    });
    server.on('tlsClientError', (error, socket) => {
      this.#refuse('handshake', messageOf(error));
      socket.destroy();
    });
    server.on('secureConnection', (socket) => {
      const peer = this.#peers.get(socket.remoteAddress);
      // Without an address the connection has ended.
      if (peer === undefined) socket.destroy();
      else peer.readFrom(socket);
    });
    return server;
  }

  #newPeer(address: string): HeardPeer {
    const { timeouts, hooks } = this.#options;
    return new HeardPeer({
      timeouts,
      onChanged: () => hooks.onPeer(address),
      onRefused: (why, detail) => this.#refuse(why, detail),
      clock: this.#clock,
    });
  }

  #refuse(why: Refusal, detail: string): void {
    this.#options.hooks.onRefused(why);
    this.#options.log.debug('Refused a connection to the pair', { why, detail });
  }
}

function listening(server: Server, { address, port }: EndPoint): Promise<Error | undefined> {
  return new Promise((resolve) => {
    server.once('error', resolve);
    server.listen({ host: address, port }, () => {
      server.off('error', resolve);
      server.on('error', () => undefined);
      resolve(undefined);
    });
  });
}
