// The client of a pair, a process in its own network. It sends requests to one VIP and reports the longest time without an
// answer, connects to many VIPs until each has taken a connection, or keeps connections open.

import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { monotonic } from '../api/monotonic.ts';
import { answer, over } from '../support/parent.ts';
import { request } from '../support/request.ts';
import { KeptConnections } from './kept-connections.ts';

export type ClientOrder =
  /** Sends requests until `end`. */
  | { readonly kind: 'watch'; readonly address: string; readonly port: number }
  | { readonly kind: 'end' }
  /** Keeps connections until `release`, whose answer is Kept. */
  | { readonly kind: 'keep'; readonly address: string; readonly port: number; readonly count: number }
  | { readonly kind: 'release' }
  | { readonly kind: 'reach'; readonly addresses: readonly string[]; readonly port: number };

export interface Watched {
  /** The longest time between the ends of two consecutive answers, in milliseconds. */
  readonly outage: number;
  readonly answers: number;
}

export interface Reached {
  /** By monotonic(): the times at which the first and the last VIP took a connection. */
  readonly first: number;
  readonly last: number;
}

const REQUEST_INTERVAL_MS = 5;
const REQUEST_TIMEOUT_MS = 300;
const MAX_CONNECTIONS = 64;
const CONNECT_TIMEOUT_MS = 50;

let kept: KeptConnections | undefined;
let isWatching = false;
let watching: Promise<Watched> = Promise.resolve({ outage: Number.NaN, answers: 0 });

process.on('message', async (order: ClientOrder) => {
  if (order.kind === 'reach') return answer(await reach(order.addresses, order.port));
  if (order.kind === 'keep') {
    kept = await KeptConnections.open(order.address, order.port, order.count);
    return answer({});
  }
  if (order.kind === 'release') return answer((await kept?.close()) ?? {});
  if (order.kind === 'end') {
    isWatching = false;
    return answer(await watching);
  }
  isWatching = true;
  watching = watch(order.address, order.port);
  return answer({});
});
await over;
process.exit();

async function watch(address: string, port: number): Promise<Watched> {
  const open = new Set<Promise<void>>();
  let [last, outage, answers] = [Number.POSITIVE_INFINITY, 0, 0];
  for (; isWatching; await delay(REQUEST_INTERVAL_MS)) {
    const one = request(address, port, REQUEST_TIMEOUT_MS).then(({ failure }) => {
      open.delete(one);
      if (failure !== '') return;
      const now = monotonic();
      outage = Math.max(outage, now - last);
      last = now;
      answers++;
    });
    open.add(one);
  }
  await Promise.all(open);
  return { outage, answers };
}

async function reach(addresses: readonly string[], port: number): Promise<Reached> {
  const missing = [...addresses];
  let [first, last] = [Number.POSITIVE_INFINITY, 0];
  const work = async (): Promise<void> => {
    for (let address = missing.shift(); address !== undefined; address = missing.shift()) {
      if (await connects(address, port)) {
        last = monotonic();
        first = Math.min(first, last);
      } else missing.push(address);
    }
  };
  await Promise.all(Array.from({ length: MAX_CONNECTIONS }, work));
  return { first, last };
}

function connects(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const end = (isConnected: boolean): void => {
      clearTimeout(timer);
      socket.resetAndDestroy();
      resolve(isConnected);
    };
    const timer = setTimeout(() => end(false), CONNECT_TIMEOUT_MS);
    socket.once('connect', () => end(true)).on('error', () => setTimeout(() => end(false), 1));
  });
}
