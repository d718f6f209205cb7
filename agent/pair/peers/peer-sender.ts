// Sends this host's reports to the other agent of the pair: at once after a change, and at a fixed interval otherwise.
// Connects, and connects again with a back-off whenever the connection ends.

import type { TcpNetConnectOpts } from 'node:net';
import type { ConnectionOptions, TLSSocket } from 'node:tls';
import { type BackoffTerms, backoffMs } from '../../base/backoff.ts';
import { type Clock, systemClock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { ReadFirstTimeout } from '../../base/read-first-timeout.ts';
import { tls } from '../../host/node-http.ts';
import { type PairCredentials, tlsOptions } from './credentials.ts';
import type { EndPoint } from './peer-listener.ts';
import { type PairReport, reportText } from './report.ts';

export interface PeerSenderOptions {
  readonly ownAddress: string;
  readonly peer: EndPoint;
  readonly credentials: PairCredentials;
  readonly report: () => PairReport;
  /** Between two reports while nothing changes. */
  readonly intervalMs: number;
  /** For the peer's kernel to accept a connection, and for the peer to answer a report. */
  readonly timeoutMs: number;
  /** The peer's host is reachable during the handshake, but may be very busy. */
  readonly handshakeTimeoutMs: number;
  readonly clock?: Clock;
}

const RECONNECT: BackoffTerms = { firstMs: 100, mostMs: 2_000, random: Math.random };
/** Changes within this time are sent in one report. */
const CHANGE_DELAY_MS = 20;

export class PeerSender {
  readonly #options: PeerSenderOptions;
  readonly #clock: Clock;
  readonly #timeout: ReadFirstTimeout;
  #credentials: PairCredentials;
  #socket: TLSSocket | undefined;
  #state: 'connecting' | 'handshake' | 'sending' | 'waiting' = 'waiting';
  /** The peer has answered: with TLS 1.3 it may refuse a certificate after the handshake. */
  #isAnswered = false;
  /** Attempts in a row without an answer. */
  #failures = 0;
  /** Cancels the next attempt to connect while there is no connection, the next report while there is one. */
  #cancelNext: (() => void) | undefined;
  #cancelSoon: (() => void) | undefined;
  #fault = 'Not connected yet';
  #closed = false;

  constructor(options: PeerSenderOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#timeout = new ReadFirstTimeout(() => this.#timedOut(), this.#clock);
    this.#credentials = options.credentials;
  }

  /** Why no report reaches the peer; '' if reports do. */
  get fault(): string {
    return this.#isAnswered ? '' : this.#fault;
  }

  /** For the next connection. */
  renew(credentials: PairCredentials): void {
    this.#credentials = credentials;
  }

  start(): void {
    if (this.#closed) return;
    const { ownAddress, peer, timeoutMs, handshakeTimeoutMs } = this.#options;
    const options: ConnectionOptions & TcpNetConnectOpts = {
      host: peer.address,
      port: peer.port,
      localAddress: ownAddress,
      ...tlsOptions(this.#credentials),
      // The certificate or its issuer is trusted; it names no host.
      checkServerIdentity: () => undefined,
    };
    this.#state = 'connecting';
    const socket = tls().connect(options);
    this.#socket = socket;
    // A host that loses power ends no connection, and TCP would wait for minutes.
    this.#timeout.wait(timeoutMs);
    socket.once('connect', () => {
      this.#state = 'handshake';
      this.#timeout.wait(handshakeTimeoutMs);
    });
    socket.once('secureConnect', () => {
      this.#state = 'sending';
      this.#timeout.end();
      this.#sendNow();
    });
    let fault = 'The connection has ended';
    socket.on('error', (error) => {
      fault = messageOf(error);
    });
    socket.on('data', () => {
      this.#timeout.end();
      this.#isAnswered = true;
      this.#failures = 0;
    });
    socket.once('close', () => this.#lost(fault));
  }

  /** The peer is running: connects now instead of waiting for the next attempt. */
  hurry(): void {
    if (this.#state !== 'waiting' || this.#cancelNext === undefined) return;
    this.#cancelNext();
    this.start();
  }

  /** The report has changed. */
  send(): void {
    if (this.#state === 'sending')
      this.#cancelSoon ??= this.#clock.after(CHANGE_DELAY_MS, () => this.#sendNow());
  }

  close(): void {
    this.#closed = true;
    this.#stop();
    this.#socket?.destroy();
  }

  #sendNow(): void {
    this.#stopTimers();
    const { report, intervalMs, timeoutMs } = this.#options;
    if (this.#socket?.writableNeedDrain === false) this.#socket.write(reportText(report()));
    // The timeout counts from the oldest report without an answer.
    if (!this.#timeout.isWaiting) this.#timeout.wait(timeoutMs);
    this.#cancelNext = this.#clock.after(intervalMs, () => this.#sendNow());
  }

  #timedOut(): void {
    const { peer, timeoutMs, handshakeTimeoutMs } = this.#options;
    const what = {
      connecting: `accepts no connection within ${timeoutMs} ms`,
      handshake: `does not complete the handshake within ${handshakeTimeoutMs} ms`,
      sending: `does not answer within ${timeoutMs} ms`,
      waiting: 'is not connected',
    }[this.#state];
    this.#socket?.destroy(new Error(`${peer.address} port ${peer.port} ${what}`));
  }

  #lost(fault: string): void {
    this.#stop();
    this.#fault = fault;
    this.#isAnswered = false;
    this.#state = 'waiting';
    if (this.#closed) return;
    this.#cancelNext = this.#clock.after(backoffMs(++this.#failures, RECONNECT), () => this.start());
  }

  #stop(): void {
    this.#stopTimers();
    this.#timeout.end();
  }

  #stopTimers(): void {
    this.#cancelNext?.();
    this.#cancelSoon?.();
    this.#cancelNext = undefined;
    this.#cancelSoon = undefined;
  }
}
