// What one peer sends to this host: its connections in their handshake, the connection whose reports count, and the last report
// until it is too old.

import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { ReadFirstTimeout } from '../../base/read-first-timeout.ts';
import { type PairReport, ReportReader } from './report.ts';

/** Why a connection was refused or ended. */
export type Refusal = 'address' | 'handshake' | 'message' | 'silence';

/** Milliseconds. */
export interface PeerTimeouts {
  /** Without a report for so long the peer counts as unknown. */
  readonly report: number;
  /** For a handshake, and without a report until the connection is ended: the peer's host may be very busy. */
  readonly connection: number;
}

export interface HeardPeerOptions {
  readonly timeouts: PeerTimeouts;
  /** A report has come, or the last one is too old. */
  readonly onChanged: () => void;
  readonly onRefused: (why: Refusal, detail: string) => void;
  readonly clock: Clock;
}

/** Connections without a certificate so far; of more than that the oldest gives way, so that the peer always gets in. */
const MAX_HANDSHAKES = 16;

export class HeardPeer {
  readonly #options: HeardPeerOptions;
  /** By the peer's port, the oldest first. */
  readonly #handshakes = new Map<number | undefined, Socket>();
  readonly #tooOld: ReadFirstTimeout;
  /** The last one that was accepted. */
  #current: TLSSocket | undefined;
  #report: PairReport | undefined;

  constructor(options: HeardPeerOptions) {
    this.#options = options;
    this.#tooOld = new ReadFirstTimeout(() => {
      this.#report = undefined;
      options.onChanged();
    }, options.clock);
  }

  /** undefined if there is none, or if it is too old. */
  get report(): PairReport | undefined {
    return this.#report;
  }

  close(): void {
    this.#tooOld.end();
  }

  handshakeBegins(socket: Socket): void {
    const { remotePort } = socket;
    this.#handshakes.set(remotePort, socket);
    socket.once('close', () => this.#handshakes.delete(remotePort));
    const [oldest] = this.#handshakes.values();
    if (this.#handshakes.size > MAX_HANDSHAKES) oldest?.destroy();
  }

  /** After the handshake: the peer has a trusted certificate. */
  readFrom(socket: TLSSocket): void {
    const { timeouts, onRefused, clock } = this.#options;
    this.#handshakes.delete(socket.remotePort);
    const reader = new ReportReader();
    this.#current?.destroy();
    this.#current = socket;
    const silence = new ReadFirstTimeout(() => {
      onRefused('silence', 'no report came in time');
      socket.destroy();
    }, clock);
    silence.wait(timeouts.connection);
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      silence.wait(timeouts.connection);
      try {
        for (const report of reader.push(chunk)) if (socket === this.#current) this.#receive(report);
        // Any answer confirms the report to the peer.
        if (!socket.writableNeedDrain) socket.write('\n');
      } catch (error) {
        onRefused('message', messageOf(error));
        socket.destroy();
      }
    });
    socket.once('close', () => {
      silence.end();
      if (socket === this.#current) this.#current = undefined;
    });
  }

  #receive(report: PairReport): void {
    this.#tooOld.wait(this.#options.timeouts.report);
    this.#report = report;
    this.#options.onChanged();
  }
}
