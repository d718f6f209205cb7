// Looks at this host's own HAProxy, as its peer or a client would find it: does it answer on its socket, and do its
// listeners take connections.

import { connect } from 'node:net';
import { messageOf } from '../../base/errors.ts';
import { Patience } from '../../base/read-first-timeout.ts';
import { isShortage } from '../../host/shortage.ts';
import type { Listener, LoadBalancer } from '../../model/load-balancer.ts';
import { type Place, whyNotListening } from './listening.ts';

export interface WatchOptions {
  /** Fails where HAProxy does not answer in time. */
  readonly ask: () => Promise<unknown>;
  readonly wanted: ReadonlyMap<string, LoadBalancer>;
  /** What HAProxy is known to serve of a load balancer; what is `pending` may not listen yet where it shall. */
  readonly served: (key: string) => LoadBalancer | 'pending' | undefined;
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

  /** `isOurs`: whether it can be seen of a VIP what listens there on this host. undefined: of none. */
  async look(isOurs: ((address: string) => boolean) | undefined): Promise<Seen> {
    try {
      await this.#options.ask();
    } catch (error) {
      return { haproxy: messageOf(error), listeners: '' };
    }
    return { haproxy: '', listeners: isOurs === undefined ? '' : await this.#sample(isOurs) };
  }

  /** The next few listeners, until one takes a connection; of an address that cannot be bound there is a report already. */
  async #sample(isOurs: (address: string) => boolean): Promise<string> {
    let fault = '';
    for (let sample = 0; sample < SAMPLES; sample++) {
      for (const place of this.#next(isOurs)) {
        fault = await this.#options.knock(place);
        if (fault === '') return '';
      }
    }
    return fault;
  }

  /** Goes round: each listener has its turn, with all of its addresses. [] where there is none. */
  #next(isOurs: (address: string) => boolean): readonly Place[] {
    const { serves } = this.#options;
    for (let round = 0; round < 2; round++) {
      this.#listeners ??= this.#all();
      for (let next = this.#listeners.next(); next.done !== true; next = this.#listeners.next()) {
        const { name, addresses, port } = next.value;
        const ours = addresses.filter(isOurs);
        if (ours.length > 0 && serves(name)) return ours.map((address) => ({ address, port }));
      }
      this.#listeners = undefined;
    }
    return [];
  }

  *#all(): Generator<Listener, void, void> {
    const { wanted, served } = this.#options;
    for (const key of wanted.keys()) {
      const loadBalancer = served(key);
      if (loadBalancer !== undefined && loadBalancer !== 'pending') yield* loadBalancer.listeners;
    }
  }
}

/**
 * '' where a connection is taken, in so many milliseconds, or where this process lacks what it takes to try. Silence is
 * no refusal: at its limit HAProxy accepts nothing, so the kernel's queue is full, of these attempts, too. Then it counts
 * whether the kernel has the listener; a HAProxy that hangs is found by its socket.
 */
export function knock(place: Place, milliseconds: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ host: place.address, port: place.port });
    const patience = new Patience(() => end(whyNotListening(process.pid, place)));
    const end = (fault: string | Promise<string>): void => {
      patience.end();
      socket.destroy();
      resolve(fault);
    };
    patience.wait(milliseconds);
    socket.once('connect', () => end(''));
    socket.once('error', (error) => end(isShortage(error) ? '' : messageOf(error)));
  });
}
