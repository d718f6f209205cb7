// Hears the other agent of the pair: listens on this host's address, lets in who comes from the peer's address and
// shows a certificate that is trusted (TLS 1.3, both sides), and keeps what was told last, until it is too old.

import { createServer, type Server, type Socket } from 'node:net';
import type { TLSSocket, Server as TlsServer } from 'node:tls';
import { messageOf } from '../../base/errors.ts';
import { ReadFirstTimeout } from '../../base/read-first-timeout.ts';
import type { Log } from '../../host/log.ts';
import { tls } from '../../host/node-http.ts';
import type { PairCredentials } from './credentials.ts';
import type { PairReport } from './report.ts';
import { ReportReader } from './report-reader.ts';

export interface EndPoint {
  readonly address: string;
  readonly port: number;
}

/** Why somebody was not listened to. */
export type Refusal = 'address' | 'handshake' | 'message' | 'silence';

export interface PeerEarOptions {
  readonly own: EndPoint;
  readonly peerAddress: string;
  readonly credentials: PairCredentials;
  /** Milliseconds without a report after which the peer counts as unknown. */
  readonly patience: number;
  /** Milliseconds for a handshake, and without a report after which a connection is ended: its host may be very busy. */
  readonly silencePatience: number;
  /** It listens: the address is this host's. */
  readonly onListening: () => Promise<void>;
  /** Something else is known of the peer, or nothing any more. */
  readonly onHeard: () => void;
  readonly onRefused: (why: Refusal) => void;
  readonly log: Log;
}

/** Milliseconds between two attempts to listen. */
const AGAIN = 1_000;
/** One that counts, one that takes its place, and some that are still shaking hands. */
const MOST_CONNECTIONS = 4;

export class PeerEar {
  readonly #options: PeerEarOptions;
  readonly #sockets = new Set<Socket>();
  /** Lets in by address; the other one shakes hands with those who were let in. */
  #server: Server | undefined;
  readonly #handshakes: TlsServer;
  readonly #tooOld = new ReadFirstTimeout(() => {
    this.#report = undefined;
    this.#options.onHeard();
  });
  /** The connection whose reports count: the last one that was let in. */
  #counting: TLSSocket | undefined;
  #report: PairReport | undefined;
  #again: NodeJS.Timeout | undefined;
  #fault = '';
  #closed = false;

  constructor(options: PeerEarOptions) {
    this.#options = options;
    this.#handshakes = this.#handshakeServer(options.credentials);
  }

  get isListening(): boolean {
    return this.#server !== undefined;
  }

  /** What the peer last told, while that is not too old. */
  get peer(): PairReport | undefined {
    return this.#report;
  }

  /** Why nobody can be heard, '' where somebody could. */
  get fault(): string {
    return this.#fault;
  }

  /** Returns after the first attempt to listen; where that fails, it goes on trying. */
  async start(): Promise<void> {
    const { own, log } = this.#options;
    const server = this.#doorServer();
    const error = await listening(server, own);
    if (this.#closed) {
      server.close();
      return;
    }
    if (error !== undefined) {
      const fault = `Cannot listen on ${own.address} port ${own.port}: ${messageOf(error)}`;
      if (this.#fault !== fault) log.error(fault);
      this.#fault = fault;
      this.#again = setTimeout(() => void this.start(), AGAIN);
      return;
    }
    this.#fault = '';
    this.#server = server;
    await this.#options.onListening();
  }

  /** From now on these count; connections that there are stay until they end. */
  renew({ identity, trusted }: PairCredentials): void {
    this.#handshakes.setSecureContext({ key: identity, cert: identity, ca: trusted, minVersion: 'TLSv1.3' });
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#again);
    this.#tooOld.end();
    this.#server?.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #doorServer(): Server {
    const server = createServer((socket) => {
      this.#sockets.add(socket);
      socket.on('error', () => undefined).once('close', () => this.#sockets.delete(socket));
      if (socket.remoteAddress === this.#options.peerAddress) {
        this.#handshakes.emit('connection', socket);
        return;
      }
      this.#refuse('address', `from ${socket.remoteAddress}`);
      socket.destroy();
    });
    server.maxConnections = MOST_CONNECTIONS;
    return server;
  }

  #handshakeServer({ identity, trusted }: PairCredentials): TlsServer {
    const server = tls().createServer({
      key: identity,
      cert: identity,
      ca: trusted,
      minVersion: 'TLSv1.3',
      requestCert: true,
      rejectUnauthorized: true,
      handshakeTimeout: this.#options.silencePatience,
    });
    server.on('tlsClientError', (error, socket) => {
      this.#refuse('handshake', messageOf(error));
      socket.destroy();
    });
    server.on('secureConnection', (socket) => this.#listenTo(socket));
    return server;
  }

  #listenTo(socket: TLSSocket): void {
    const reader = new ReportReader();
    this.#counting?.destroy();
    this.#counting = socket;
    const { silencePatience } = this.#options;
    const silence = new ReadFirstTimeout(() => {
      this.#refuse('silence', 'nothing was told in time');
      socket.destroy();
    });
    silence.wait(silencePatience);
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      silence.wait(silencePatience);
      try {
        for (const report of reader.push(chunk)) if (socket === this.#counting) this.#take(report);
        // The peer sees by any answer that it is heard.
        if (!socket.writableNeedDrain) socket.write('\n');
      } catch (error) {
        this.#refuse('message', messageOf(error));
        socket.destroy();
      }
    });
    socket.once('close', () => {
      silence.end();
      if (socket === this.#counting) this.#counting = undefined;
    });
  }

  #take(report: PairReport): void {
    this.#tooOld.wait(this.#options.patience);
    this.#report = report;
    this.#options.onHeard();
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
