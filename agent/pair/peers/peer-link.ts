// The connections between this agent and its peers, one in a pair: the listener for their reports, a sender of this host's for
// each, and the credentials of all.
// Why: docs/design/decisions/0011-peer-timeouts.md

import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../host/log.ts';
import { type PairCredentials, readCredentials } from './credentials.ts';
import type { Refusal } from './heard-peer.ts';
import { PeerListener } from './peer-listener.ts';
import { PeerSender } from './peer-sender.ts';
import type { PairReport } from './report.ts';

export interface PeerLinkOptions {
  readonly addresses: () => PeerAddresses;
  /** The same on both hosts. */
  readonly port: number;
  /** Path of the file. */
  readonly credentials: string;
  readonly report: () => PairReport;
  /** A text that identifies where the two HAProxies share their tables. */
  readonly tables: () => string;
  readonly hooks: PeerLinkHooks;
  readonly log: Log;
}

export interface PeerLinkHooks {
  /** A peer's report has changed, or is too old. */
  readonly onPeer: () => void;
  /**
   * The credentials are usable and the address is this host's own. Called once, and again after a change of the
   * credentials, the addresses or the place of the tables.
   */
  readonly onProved: (credentials: PairCredentials) => Promise<void>;
  readonly onRefused: (why: Refusal) => void;
}

/** The addresses of this host and of its peers, between which the agents connect. */
export interface PeerAddresses {
  readonly own: string;
  readonly peers: readonly string[];
}

const REPORT_INTERVAL_MS = 500;
const REPORT_TIMEOUT_MS = 2_000;
/** For a peer that is reachable, but has hardly any processor time. */
const BUSY_PEER_TIMEOUT_MS = 10_000;

export class PeerLink {
  readonly #options: PeerLinkOptions;
  #addresses: PeerAddresses;
  #credentials: PairCredentials | undefined;
  /** The place of the tables when the credentials were last used. */
  #tables = '';
  #credentialsFault = '';
  #connection:
    | {
        readonly listener: PeerListener;
        /** By the peer's address. */
        readonly senders: ReadonlyMap<string, PeerSender>;
      }
    | undefined;
  #closed = false;

  constructor(options: PeerLinkOptions) {
    this.#options = options;
    this.#addresses = options.addresses();
  }

  /**
   * Reads the credentials, at the start and again later; unusable ones change nothing but the fault. If the addresses
   * have changed, connects again with the new ones.
   */
  async renew(): Promise<void> {
    const { credentials: path, tables: placeOfTables, addresses, log } = this.#options;
    this.#move(addresses());
    try {
      const credentials = await readCredentials(path);
      this.#credentialsFault = '';
      const tables = placeOfTables();
      const isSame = credentials.fingerprint === this.#credentials?.fingerprint && tables === this.#tables;
      if (this.#closed || isSame) return;
      [this.#credentials, this.#tables] = [credentials, tables];
      await this.#use(credentials);
    } catch (error) {
      this.#credentialsFault = messageOf(error);
      log.error('The credentials of the pair cannot be used', { error: this.#credentialsFault });
    }
  }

  /** The report of this host has changed. */
  send(): void {
    for (const sender of this.#connection?.senders.values() ?? []) sender.send();
  }

  /** The last report of the peer at this address; undefined if there is no recent one. */
  reportOf(address: string): PairReport | undefined {
    return this.#connection?.listener.reportOf(address);
  }

  /** The report of the only peer of a pair. */
  get peer(): PairReport | undefined {
    return this.reportOf(this.#addresses.peers[0] ?? '');
  }

  /** The end of the credentials, milliseconds since the epoch; 0 if there are none. */
  get expires(): number {
    return this.#credentials?.expires ?? 0;
  }

  /** '' if both directions work with all peers. */
  get fault(): string {
    if (this.localFault !== '') return this.localFault;
    for (const peer of this.#connection?.senders.keys() ?? []) {
      if (this.reportOf(peer) === undefined) return `The peer ${peer} is not heard`;
      const fault = this.faultOf(peer);
      if (fault !== '') return `The peer does not hear this host: ${fault}`;
    }
    return '';
  }

  /** Why this host can connect with no peer; '' if it can. */
  get localFault(): string {
    if (this.#credentialsFault !== '') return this.#credentialsFault;
    return this.#connection === undefined
      ? 'The credentials of the pair are not read yet'
      : this.#connection.listener.fault;
  }

  /** Why no report of this host reaches the peer at this address; '' if reports do. */
  faultOf(address: string): string {
    return this.#connection?.senders.get(address)?.fault ?? 'Not connected yet';
  }

  close(): void {
    this.#closed = true;
    this.#disconnect();
  }

  #move(addresses: PeerAddresses): void {
    if (JSON.stringify(addresses) === JSON.stringify(this.#addresses)) return;
    this.#addresses = addresses;
    this.#disconnect();
    // The next credentials are used even if they are the same.
    this.#credentials = undefined;
    this.#options.hooks.onPeer();
  }

  #disconnect(): void {
    this.#connection?.listener.close();
    for (const sender of this.#connection?.senders.values() ?? []) sender.close();
    this.#connection = undefined;
  }

  async #use(credentials: PairCredentials): Promise<void> {
    const { port, report, hooks, log } = this.#options;
    const { own, peers } = this.#addresses;
    if (this.#connection !== undefined) {
      const { listener, senders } = this.#connection;
      listener.renew(credentials);
      for (const sender of senders.values()) sender.renew(credentials);
      if (listener.isListening) await hooks.onProved(credentials);
      return;
    }
    const senderTo = (address: string) =>
      new PeerSender({
        ownAddress: own,
        peer: { address, port },
        credentials,
        report,
        intervalMs: REPORT_INTERVAL_MS,
        timeoutMs: REPORT_TIMEOUT_MS,
        handshakeTimeoutMs: BUSY_PEER_TIMEOUT_MS,
      });
    const senders = new Map(peers.map((address) => [address, senderTo(address)]));
    const listener = new PeerListener({
      own: { address: own, port },
      peers,
      credentials,
      timeouts: { report: REPORT_TIMEOUT_MS, connection: BUSY_PEER_TIMEOUT_MS },
      hooks: {
        onListening: () => hooks.onProved(this.#credentials ?? credentials),
        onPeer: (address) => {
          senders.get(address)?.hurry();
          hooks.onPeer();
        },
        onRefused: hooks.onRefused,
      },
      log,
    });
    this.#connection = { listener, senders };
    const listening = listener.start();
    for (const sender of senders.values()) sender.start();
    await listening;
  }
}
