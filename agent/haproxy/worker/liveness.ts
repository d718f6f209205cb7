// Checks HAProxy from outside: whether it answers on its socket, and whether its listeners accept connections.

import { connect } from 'node:net';
import { messageOf } from '../../base/errors.ts';
import { ReadFirstTimeout } from '../../base/read-first-timeout.ts';
import type { DataplaneFacts } from '../../dataplane/forwarder.ts';
import type { Liveness, LivenessOptions } from '../../dataplane/meter.ts';
import { isShortage } from '../../host/shortage.ts';
import type { Listener, LoadBalancer } from '../../model/load-balancer.ts';
import { refusesConnections } from '../config/listener-config.ts';
import { type SocketAddress, whyNotListening } from './listening.ts';

export interface HaproxyLivenessOptions {
  /** Fails if HAProxy does not answer in time. */
  readonly ask: (timeoutMs: number) => Promise<unknown>;
  readonly desired: ReadonlyMap<string, LoadBalancer>;
  /** Listeners of `pending` load balancers may not listen yet. */
  readonly facts: Pick<DataplaneFacts, 'served' | 'serves'>;
  /** The network namespace of HAProxy; '' for the agent's own. */
  readonly netns: string;
  /** 0 while there is no worker. */
  readonly workerPid: () => number;
}

/** Listeners that must fail in a row: a single failure may be that listener's own. */
const SAMPLES = 3;
/** Every so many looks read the kernel's list of sockets, which costs more than a connection. */
const LOOKS_PER_LISTING = 4;

export class HaproxyLiveness {
  readonly #options: HaproxyLivenessOptions;
  #listeners: Generator<Listener, void, void> | undefined;
  #looks = 0;
  /** The result of the last look at listeners. */
  #fault = '';

  constructor(options: HaproxyLivenessOptions) {
    this.#options = options;
  }

  async look({ timeoutMs, holds }: LivenessOptions): Promise<Liveness> {
    const { ask, netns } = this.#options;
    try {
      await ask(timeoutMs);
    } catch (error) {
      return { control: messageOf(error), listeners: '' };
    }
    // The agent cannot connect into another namespace, and a VIP of the peer would answer for the peer.
    const canConnect = holds !== undefined && netns === '';
    if (canConnect) this.#fault = await this.#sample(holds, (to) => probeListener(to, timeoutMs));
    else if (this.#looks++ % LOOKS_PER_LISTING === 0 || this.#fault !== '')
      this.#fault = await this.#sample(
        () => true,
        (to) => this.#whyNotListed(to),
      );
    return { control: '', listeners: this.#fault };
  }

  #whyNotListed(to: SocketAddress): Promise<string> {
    const { netns, workerPid } = this.#options;
    return whyNotListening(netns === '' ? process.pid : workerPid(), to);
  }

  /** Tries the next few listeners until one accepts. */
  async #sample(
    isHere: (address: string) => boolean,
    probe: (to: SocketAddress) => Promise<string>,
  ): Promise<string> {
    let fault = '';
    for (let sample = 0; sample < SAMPLES; sample++) {
      for (const to of this.#next(isHere)) {
        fault = await probe(to);
        if (fault === '') return '';
      }
    }
    return fault;
  }

  /** The next listener with its addresses, round robin. [] if there is none. */
  #next(isHere: (address: string) => boolean): readonly SocketAddress[] {
    const { facts } = this.#options;
    for (let round = 0; round < 2; round++) {
      this.#listeners ??= this.#all();
      for (let next = this.#listeners.next(); next.done !== true; next = this.#listeners.next()) {
        const { name, addresses, port } = next.value;
        const here = addresses.filter(isHere);
        if (here.length > 0 && facts.serves(name)) return here.map((address) => ({ address, port }));
      }
      this.#listeners = undefined;
    }
    return [];
  }

  *#all(): Generator<Listener, void, void> {
    const { desired, facts } = this.#options;
    for (const key of desired.keys()) {
      const loadBalancer = facts.served(key);
      if (loadBalancer === undefined || loadBalancer === 'pending') continue;
      for (const listener of loadBalancer.listeners) if (!refusesConnections(listener)) yield listener;
    }
  }
}

/**
 * Tries a connection: '' if it is taken in time, or if this process lacks the descriptors to try. A timeout is no
 * refusal: at its connection limit HAProxy accepts nothing and the kernel's queue is full; then the kernel's list of
 * sockets decides. A HAProxy that hangs is found by its control socket.
 */
export function probeListener(to: SocketAddress, timeoutMs: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ host: to.address, port: to.port });
    const timeout = new ReadFirstTimeout(() => end(whyNotListening(process.pid, to)));
    const end = (fault: string | Promise<string>): void => {
      timeout.end();
      socket.destroy();
      resolve(fault);
    };
    timeout.wait(timeoutMs);
    socket.once('connect', () => end(''));
    socket.once('error', (error) => end(isShortage(error) ? '' : messageOf(error)));
  });
}
