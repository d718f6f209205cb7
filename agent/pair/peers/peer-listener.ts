// Receives the reports of the other agent of the pair: listens on this host's address, accepts a connection from the
// peer's address with a trusted certificate (TLS 1.3, both sides), and keeps the last report until it is too old.

import { createServer, type Server, type Socket } from 'node:net';
import type { TLSSocket, Server as TlsServer } from 'node:tls';
import { type Clock, systemClock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { Fault } from '../../base/fault.ts';
import { ReadFirstTimeout } from '../../base/read-first-timeout.ts';
import type { Log } from '../../host/log.ts';
import { tls } from '../../host/node-http.ts';
import { type PairCredentials, tlsOptions } from './credentials.ts';
import type { PairReport } from './report.ts';
import { ReportReader } from './report.ts';

export interface EndPoint {
  readonly address: string;
  readonly port: number;
}

/** Why a connection was refused or ended. */
export type Refusal = 'address' | 'handshake' | 'message' | 'silence';

export interface PeerListenerOptions {
  readonly own: EndPoint;
  readonly peerAddress: string;
  readonly credentials: PairCredentials;
  /** Without a report for so long the peer counts as unknown. */
  readonly reportTimeoutMs: number;
  /** For a handshake, and without a report until the connection is ended: the peer's host may be very busy. */
  readonly connectionTimeoutMs: number;
  /** It listens: the address is this host's. */
  readonly onListening: () => Promise<void>;
  /** A report has come, or the last one is too old. */
  readonly onPeer: () => void;
  readonly onRefused: (why: Refusal) => void;
  readonly log: Log;
  readonly clock?: Clock;
}

const LISTEN_RETRY_DELAY_MS = 1_000;
/** Connections without a certificate so far; of more than that the oldest gives way, so that the peer always gets in. */
const MAX_HANDSHAKES = 16;

export class PeerListener {
  readonly #options: PeerListenerOptions;
  readonly #clock: Clock;
  readonly #sockets = new Set<Socket>();
  /** Connections in their handshake by the peer's port, the oldest first. */
  readonly #handshakes = new Map<number | undefined, Socket>();
  /** Accepts connections by their address, and passes them to the TLS server. */
  #server: Server | undefined;
  readonly #tlsServer: TlsServer;
  readonly #tooOld: ReadFirstTimeout;
  /** The connection whose reports count: the last one that was accepted. */
  #current: TLSSocket | undefined;
  #report: PairReport | undefined;
  #cancelRetry: (() => void) | undefined;
  readonly #fault = new Fault();
  #closed = false;

  constructor(options: PeerListenerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#tooOld = new ReadFirstTimeout(() => {
      this.#report = undefined;
      options.onPeer();
    }, this.#clock);
    this.#tlsServer = this.#newTlsServer(options.credentials);
  }

  get isListening(): boolean {
    return this.#server !== undefined;
  }

  /** The last report of the peer; undefined if it is too old. */
  get peer(): PairReport | undefined {
    return this.#report;
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
    await this.#options.onListening();
  }

  /** For new connections; open ones stay until they end. */
  renew(credentials: PairCredentials): void {
    this.#tlsServer.setSecureContext(tlsOptions(credentials));
  }

  close(): void {
    this.#closed = true;
    this.#cancelRetry?.();
    this.#tooOld.end();
    this.#server?.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #newServer(): Server {
    return createServer((socket) => {
      this.#sockets.add(socket);
      socket.on('error', () => undefined).once('close', () => this.#sockets.delete(socket));
      if (socket.remoteAddress === this.#options.peerAddress) {
        this.#beginHandshake(socket);
        return;
      }
      this.#refuse('address', `from ${socket.remoteAddress}`);
      socket.destroy();
    });
  }

  #beginHandshake(socket: Socket): void {
    const { remotePort } = socket;
    this.#handshakes.set(remotePort, socket);
    socket.once('close', () => this.#handshakes.delete(remotePort));
    const [oldest] = this.#handshakes.values();
    if (this.#handshakes.size > MAX_HANDSHAKES) oldest?.destroy();
    this.#tlsServer.emit('connection', socket);
  }

  #newTlsServer(credentials: PairCredentials): TlsServer {
    const server = tls().createServer({
      ...tlsOptions(credentials),
      requestCert: true,
      rejectUnauthorized: true,
      handshakeTimeout: this.#options.connectionTimeoutMs,
    });
    server.on('tlsClientError', (error, socket) => {
      this.#refuse('handshake', messageOf(error));
      socket.destroy();
    });
    server.on('secureConnection', (socket) => this.#readFrom(socket));
    return server;
  }

  #readFrom(socket: TLSSocket): void {
    this.#handshakes.delete(socket.remotePort);
    const reader = new ReportReader();
    this.#current?.destroy();
    this.#current = socket;
    const { connectionTimeoutMs } = this.#options;
    const silence = new ReadFirstTimeout(() => {
      this.#refuse('silence', 'no report came in time');
      socket.destroy();
    }, this.#clock);
    silence.wait(connectionTimeoutMs);
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      silence.wait(connectionTimeoutMs);
      try {
        for (const report of reader.push(chunk)) if (socket === this.#current) this.#receive(report);
        // Any answer confirms the report to the peer.
        if (!socket.writableNeedDrain) socket.write('\n');
      } catch (error) {
        this.#refuse('message', messageOf(error));
        socket.destroy();
      }
    });
    socket.once('close', () => {
      silence.end();
      if (socket === this.#current) this.#current = undefined;
    });
  }

  #receive(report: PairReport): void {
    this.#tooOld.wait(this.#options.reportTimeoutMs);
    this.#report = report;
    this.#options.onPeer();
  }

  #refuse(why: Refusal, detail: string): void {
    this.#options.onRefused(why);
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
