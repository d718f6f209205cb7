// The two directions between the agents of a pair as one: what is heard, what is told, and the credentials of both.

import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../host/log.ts';
import { type PairCredentials, readCredentials } from './credentials.ts';
import { PeerEar, type Refusal } from './peer-listener.ts';
import { PeerMouth } from './peer-sender.ts';
import type { PairReport } from './report.ts';

export interface PeerLinkOptions {
  readonly addresses: () => PairAddresses;
  /** The same on both hosts. */
  readonly port: number;
  /** The file. */
  readonly credentials: string;
  readonly report: () => PairReport;
  /** Something else is known of the peer, or nothing any more. */
  readonly onHeard: () => void;
  /** Where the HAProxies of the two hosts share their tables, in any words: others name another place. */
  readonly tables: () => string;
  /**
   * These credentials can be used, and this host's address is known to be its own: told once, and again when there are
   * other credentials, other addresses or another place for the tables.
   */
  readonly onProved: (credentials: PairCredentials) => Promise<void>;
  readonly onRefused: (why: Refusal) => void;
  readonly log: Log;
}

/** This host's and its peer's, by which the agents talk. */
export interface PairAddresses {
  readonly own: string;
  readonly peer: string;
}

/** Milliseconds between two reports, and without one after which the peer counts as unknown. */
const BEAT = 500;
const PATIENCE = 2_000;
/** Milliseconds for a peer whose host is there, but which has hardly any processor. */
const LONG_PATIENCE = 10_000;

export class PeerLink {
  readonly #options: PeerLinkOptions;
  #addresses: PairAddresses;
  #credentials: PairCredentials | undefined;
  /** As it was when the credentials were last used. */
  #tables = '';
  #credentialsFault = '';
  #ear: PeerEar | undefined;
  #mouth: PeerMouth | undefined;
  #closed = false;

  constructor(options: PeerLinkOptions) {
    this.#options = options;
    this.#addresses = options.addresses();
  }

  /**
   * Reads the credentials, at the start and again later; those that cannot be used change nothing but the fault. Where
   * the addresses are others than before, begins anew with these.
   */
  async renew(): Promise<void> {
    const { credentials: path, log } = this.#options;
    this.#move(this.#options.addresses());
    try {
      const credentials = await readCredentials(path);
      this.#credentialsFault = '';
      const tables = this.#options.tables();
      const isSame = credentials.fingerprint === this.#credentials?.fingerprint && tables === this.#tables;
      if (this.#closed || isSame) return;
      [this.#credentials, this.#tables] = [credentials, tables];
      await this.#use(credentials);
    } catch (error) {
      this.#credentialsFault = messageOf(error);
      log.error('The credentials of the pair cannot be used', { error: this.#credentialsFault });
    }
  }

  /** Something has changed that the peer should know. */
  tell(): void {
    this.#mouth?.tell();
  }

  get peer(): PairReport | undefined {
    return this.#ear?.peer;
  }

  /** When the credentials end, milliseconds since the epoch; 0 where there are none. */
  get expires(): number {
    return this.#credentials?.expires ?? 0;
  }

  /** '' where both directions work. */
  get fault(): string {
    if (this.#credentialsFault !== '') return this.#credentialsFault;
    if (this.#ear === undefined || this.#mouth === undefined)
      return 'The credentials of the pair are not read yet';
    if (this.#ear.fault !== '') return this.#ear.fault;
    if (this.peer === undefined) return `The peer ${this.#addresses.peer} is not heard`;
    return this.#mouth.fault && `The peer does not hear this host: ${this.#mouth.fault}`;
  }

  close(): void {
    this.#closed = true;
    this.#ear?.close();
    this.#mouth?.close();
  }

  #move(addresses: PairAddresses): void {
    const { own, peer } = this.#addresses;
    if (addresses.own === own && addresses.peer === peer) return;
    this.#addresses = addresses;
    this.#ear?.close();
    this.#mouth?.close();
    this.#ear = undefined;
    this.#mouth = undefined;
    // Whatever is read next is used.
    this.#credentials = undefined;
    this.#options.onHeard();
  }

  async #use(credentials: PairCredentials): Promise<void> {
    const { port, report, onHeard, onProved, onRefused, log } = this.#options;
    const { own, peer } = this.#addresses;
    if (this.#ear !== undefined) {
      this.#ear.renew(credentials);
      this.#mouth?.renew(credentials);
      if (this.#ear.isListening) await onProved(credentials);
      return;
    }
    this.#ear = new PeerEar({
      own: { address: own, port },
      peerAddress: peer,
      credentials,
      patience: PATIENCE,
      silencePatience: LONG_PATIENCE,
      onListening: () => onProved(this.#credentials ?? credentials),
      onHeard: () => {
        this.#mouth?.hurry();
        onHeard();
      },
      onRefused,
      log,
    });
    this.#mouth = new PeerMouth({
      ownAddress: own,
      peer: { address: peer, port },
      credentials,
      report,
      beat: BEAT,
      patience: PATIENCE,
      handshakePatience: LONG_PATIENCE,
    });
    const listening = this.#ear.start();
    this.#mouth.start();
    await listening;
  }
}
