// Looks at this host's own HAProxy, as its peer or a client would find it: does it answer on its socket, and, while this
// host is the master, do its listeners take connections on the VIPs.

import { connect } from 'node:net';
import { messageOf } from '../errors.ts';
import type { LoadBalancer } from '../model.ts';

export interface WatchOptions {
  /** Fails where HAProxy does not answer in time. */
  readonly ask: () => Promise<unknown>;
  readonly wanted: ReadonlyMap<string, LoadBalancer>;
  /** Whether HAProxy has this listener, as far as is known. */
  readonly serves: (listener: string) => boolean;
  /** Milliseconds in which a listener on this very host must take a connection. */
  readonly patience: () => number;
}

export interface Seen {
  /** What is wrong, '' where nothing is. */
  readonly haproxy: string;
  readonly listeners: string;
}

/** One listener that fails can be its own fault; that many in a row cannot. */
const SAMPLES = 3;

export class Watch {
  readonly #options: WatchOptions;
  #names: Iterator<Place> | undefined;

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  /** `hasVips`: the VIPs are on this host; otherwise a connection to them would reach the other one. */
  async look(hasVips: boolean): Promise<Seen> {
    try {
      await this.#options.ask();
    } catch (error) {
      return { haproxy: messageOf(error), listeners: '' };
    }
    return { haproxy: '', listeners: hasVips ? await this.#sample() : '' };
  }

  /** The next few listeners, until one takes a connection. */
  async #sample(): Promise<string> {
    let fault = '';
    for (let sample = 0; sample < SAMPLES; sample++) {
      const place = this.#next();
      if (place === undefined) return fault;
      fault = await knock(place, this.#options.patience());
      if (fault === '') return '';
    }
    return fault;
  }

  /** Goes round: each listener has its turn. */
  #next(): Place | undefined {
    for (let round = 0; round < 2; round++) {
      this.#names ??= this.#places();
      const { value, done } = this.#names.next();
      if (done !== true) return value;
      this.#names = undefined;
    }
    return undefined;
  }

  *#places(): Generator<Place, void, void> {
    const { wanted, serves } = this.#options;
    for (const { listeners } of wanted.values()) {
      for (const { name, addresses, port } of listeners) {
        const [address] = addresses;
        if (address !== undefined && serves(name)) yield { address, port };
      }
    }
  }
}

interface Place {
  readonly address: string;
  readonly port: number;
}

/** '' where the connection is taken. */
function knock({ address, port }: Place, patience: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port });
    const end = (fault: string): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(fault);
    };
    const timer = setTimeout(
      () => end(`${address} port ${port} takes no connection within ${patience} ms`),
      patience,
    );
    socket.once('connect', () => end(''));
    socket.once('error', (error) => end(messageOf(error)));
  });
}
