// Tells the other agent of the pair how this host is: at once when something changes, and at each beat when nothing
// does. Connects by itself, and again, with a wait that doubles, whenever the connection ends.

import type { TcpNetConnectOpts } from 'node:net';
import type { ConnectionOptions, TLSSocket } from 'node:tls';
import { messageOf } from '../../base/errors.ts';
import { ReadFirstTimeout } from '../../base/read-first-timeout.ts';
import { tls } from '../../host/node-http.ts';
import type { PairCredentials } from './credentials.ts';
import type { EndPoint } from './peer-listener.ts';
import { type PairReport, reportText } from './report.ts';

export interface PeerMouthOptions {
  readonly ownAddress: string;
  readonly peer: EndPoint;
  readonly credentials: PairCredentials;
  readonly report: () => PairReport;
  /** Milliseconds between two reports while nothing changes. */
  readonly beat: number;
  /** Milliseconds in which the peer's kernel must take a connection, and the peer answer a report. */
  readonly patience: number;
  /** Milliseconds for the handshake between the two: the peer's host is there then, but may be very busy. */
  readonly handshakePatience: number;
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
  readonly #patience = new ReadFirstTimeout(() => this.#tooLate());
  #credentials: PairCredentials;
  #socket: TLSSocket | undefined;
  #state: 'connecting' | 'shaking hands' | 'telling' | 'waiting' = 'waiting';
  /** The peer has let this host in: with TLS 1.3 it may refuse a certificate after the handshake. */
  #isHeard = false;
  #wait = SHORTEST_WAIT;
  /** The next attempt to connect while there is no connection, the next report while there is one. */
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
    return this.#isHeard ? '' : this.#fault;
  }

  /** From the next connection on. */
  renew(credentials: PairCredentials): void {
    this.#credentials = credentials;
  }

  start(): void {
    if (this.#closed) return;
    const { ownAddress, peer, patience, handshakePatience } = this.#options;
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
    this.#state = 'connecting';
    const socket = tls().connect(options);
    this.#socket = socket;
    // A host without power ends no connection, and TCP would wait for it for minutes: only an answer counts.
    this.#patience.wait(patience);
    socket.once('connect', () => {
      this.#state = 'shaking hands';
      this.#patience.wait(handshakePatience);
    });
    socket.once('secureConnect', () => {
      this.#state = 'telling';
      this.#patience.end();
      this.#tell();
    });
    let fault = 'The connection has ended';
    socket.on('error', (error) => {
      fault = messageOf(error);
    });
    socket.on('data', () => {
      this.#patience.end();
      this.#isHeard = true;
      this.#wait = SHORTEST_WAIT;
    });
    socket.once('close', () => this.#lost(fault));
  }

  /** The peer is known to be there: a wait for the next attempt is over. */
  hurry(): void {
    if (this.#state !== 'waiting' || this.#next === undefined) return;
    clearTimeout(this.#next);
    this.start();
  }

  /** Something has changed. */
  tell(): void {
    if (this.#state === 'telling') this.#soon ??= setTimeout(() => this.#tell(), TOGETHER);
  }

  close(): void {
    this.#closed = true;
    this.#stop();
    this.#socket?.destroy();
  }

  #tell(): void {
    this.#stopTimers();
    const { report, beat, patience } = this.#options;
    if (this.#socket?.writableNeedDrain === false) this.#socket.write(reportText(report()));
    // The oldest report that has no answer yet counts.
    if (!this.#patience.isWaiting) this.#patience.wait(patience);
    this.#next = setTimeout(() => this.#tell(), beat);
  }

  #tooLate(): void {
    const { peer, patience, handshakePatience } = this.#options;
    const what = {
      connecting: `takes no connection within ${patience} ms`,
      'shaking hands': `does not shake hands within ${handshakePatience} ms`,
      telling: `does not answer within ${patience} ms`,
      waiting: 'is not there',
    }[this.#state];
    this.#socket?.destroy(new Error(`${peer.address} port ${peer.port} ${what}`));
  }

  /** From now on there is nothing to tell until the next connection is there. */
  #lost(fault: string): void {
    this.#stop();
    this.#fault = fault;
    this.#isHeard = false;
    this.#state = 'waiting';
    if (this.#closed) return;
    const { random = Math.random } = this.#options;
    this.#next = setTimeout(() => this.start(), this.#wait * (0.5 + random() / 2));
    this.#wait = Math.min(LONGEST_WAIT, this.#wait * 2);
  }

  #stop(): void {
    this.#stopTimers();
    this.#patience.end();
  }

  #stopTimers(): void {
    clearTimeout(this.#next);
    clearTimeout(this.#soon);
    this.#next = undefined;
    this.#soon = undefined;
  }
}
