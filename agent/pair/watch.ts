// Looks at this host's own HAProxy, as its peer or a client would find it: does it answer on its socket, and do its
// listeners take connections on the VIPs that this host holds.

import { connect } from 'node:net';
import { messageOf } from '../base/errors.ts';
import type { Listener, LoadBalancer } from '../model.ts';
import type { Place } from './listening.ts';

export interface WatchOptions {
  /** Fails where HAProxy does not answer in time. */
  readonly ask: () => Promise<unknown>;
  readonly wanted: ReadonlyMap<string, LoadBalancer>;
  /** Whether HAProxy has this listener, as far as is known. */
  readonly serves: (listener: string) => boolean;
  /** What is wrong where HAProxy should take connections, '' where nothing is. */
  readonly knock: (place: Place) => Promise<string>;
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
  #listeners: Generator<Listener, void, void> | undefined;

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  /** `holds`: whether a VIP is on this host; a connection to another would reach the other one. undefined: none is. */
  async look(holds: ((address: string) => boolean) | undefined): Promise<Seen> {
    try {
      await this.#options.ask();
    } catch (error) {
      return { haproxy: messageOf(error), listeners: '' };
    }
    return { haproxy: '', listeners: holds === undefined ? '' : await this.#sample(holds) };
  }

  /** The next few listeners, until one takes a connection. */
  async #sample(holds: (address: string) => boolean): Promise<string> {
    let fault = '';
    for (let sample = 0; sample < SAMPLES; sample++) {
      const place = this.#next(holds);
      if (place === undefined) return fault;
      fault = await this.#options.knock(place);
      if (fault === '') return '';
    }
    return fault;
  }

  /** Goes round: each listener has its turn. */
  #next(holds: (address: string) => boolean): Place | undefined {
    const { serves } = this.#options;
    for (let round = 0; round < 2; round++) {
      this.#listeners ??= this.#all();
      for (let next = this.#listeners.next(); next.done !== true; next = this.#listeners.next()) {
        const { name, addresses, port } = next.value;
        const address = addresses.find(holds);
        if (address !== undefined && serves(name)) return { address, port };
      }
      this.#listeners = undefined;
    }
    return undefined;
  }

  *#all(): Generator<Listener, void, void> {
    for (const { listeners } of this.#options.wanted.values()) yield* listeners;
  }
}

/** '' where a connection is taken, in so many milliseconds. */
export function knock({ address, port }: Place, patience: number): Promise<string> {
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
