// Tells the other agent of the pair how this host is: at once when something changes, and at each beat when nothing
// does. Connects by itself, and again, with a wait that doubles, whenever the connection ends.

import type { TcpNetConnectOpts } from 'node:net';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { messageOf } from '../errors.ts';
import type { PairCredentials } from './credentials.ts';
import type { EndPoint } from './peer-ear.ts';
import { type PairReport, reportText } from './report.ts';

export interface PeerMouthOptions {
  readonly ownAddress: string;
  readonly peer: EndPoint;
  readonly credentials: PairCredentials;
  readonly report: () => PairReport;
  /** Milliseconds between two reports while nothing changes. */
  readonly beat: number;
  /** Milliseconds in which a connection must be there, and an answer to a report. */
  readonly patience: number;
  /** 0 to 1. */
  readonly random?: () => number;
}

/** Milliseconds. */
const SHORTEST_WAIT = 100;
const LONGEST_WAIT = 2_000;
/** Changes that come closer to each other than this are told together. */
const TOGETHER = 20;

export class PeerMouth {
  readonly #options: PeerMouthOptions;
  #credentials: PairCredentials;
  #socket: TLSSocket | undefined;
  #isConnected = false;
  /** For the next attempt to connect. */
  #isWaiting = false;
  #wait = SHORTEST_WAIT;
  #next: NodeJS.Timeout | undefined;
  #soon: NodeJS.Timeout | undefined;
  #fault = 'Not connected yet';
  #closed = false;

  constructor(options: PeerMouthOptions) {
    this.#options = options;
    this.#credentials = options.credentials;
  }

  /** Why the peer cannot be told, '' where it can. */
  get fault(): string {
    return this.#isConnected ? '' : this.#fault;
  }

  /** From the next connection on. */
  renew(credentials: PairCredentials): void {
    this.#credentials = credentials;
  }

  start(): void {
    if (this.#closed) return;
    this.#isWaiting = false;
    const { ownAddress, peer, patience } = this.#options;
    const { identity, trusted } = this.#credentials;
    const options: ConnectionOptions & TcpNetConnectOpts = {
      host: peer.address,
      port: peer.port,
      localAddress: ownAddress,
      key: identity,
      cert: identity,
      ca: trusted,
      minVersion: 'TLSv1.3',
      // The certificate is known itself, or by who signed it; it names no host.
      checkServerIdentity: () => undefined,
    };
    const socket = connect(options);
    this.#socket = socket;
    const tooLate = setTimeout(
      () =>
        socket.destroy(new Error(`${peer.address} port ${peer.port} does not answer within ${patience} ms`)),
      patience,
    );
    socket.once('secureConnect', () => {
      this.#isConnected = true;
      this.#wait = SHORTEST_WAIT;
      this.#tell();
    });
    socket.on('error', (error) => {
      this.#fault = messageOf(error);
    });
    // A host without power ends no connection, and TCP would wait for it for minutes: only an answer counts.
    socket.on('data', () => tooLate.refresh());
    socket.once('close', () => {
      clearTimeout(tooLate);
      this.#lost();
    });
  }

  /** The peer is known to be there: a wait for the next attempt is over. */
  hurry(): void {
    if (!this.#isWaiting) return;
    clearTimeout(this.#next);
    this.start();
  }

  /** Something has changed. */
  tell(): void {
    if (!this.#isConnected) return;
    this.#soon ??= setTimeout(() => this.#tell(), TOGETHER);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#next);
    clearTimeout(this.#soon);
    this.#socket?.destroy();
  }

  #tell(): void {
    clearTimeout(this.#next);
    clearTimeout(this.#soon);
    this.#soon = undefined;
    if (!this.#isConnected || this.#closed) return;
    if (this.#socket?.writableNeedDrain === false) this.#socket.write(reportText(this.#options.report()));
    this.#next = setTimeout(() => this.#tell(), this.#options.beat);
  }

  #lost(): void {
    if (this.#isConnected) this.#fault = 'The connection has ended';
    this.#isConnected = false;
    clearTimeout(this.#next);
    if (this.#closed) return;
    const { random = Math.random } = this.#options;
    this.#isWaiting = true;
    this.#next = setTimeout(() => this.start(), this.#wait * (0.5 + random() / 2));
    this.#wait = Math.min(LONGEST_WAIT, this.#wait * 2);
  }
}
