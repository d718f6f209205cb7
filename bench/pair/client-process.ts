// The client of a pair, a process in a network of its own. It asks one VIP again and again and tells the longest time
// without an answer; or it goes round many VIPs until each of them has taken a connection; or it keeps connections.

import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { monotonic } from '../api/monotonic.ts';
import { answer, over } from '../support/parent.ts';
import { request } from '../support/request.ts';
import { KeptConnections } from './kept-connections.ts';

export type ClientOrder =
  /** Until `end`. */
  | { readonly kind: 'watch'; readonly address: string; readonly port: number }
  | { readonly kind: 'end' }
  /** Until `release`, which is answered with what has become of them (Kept). */
  | { readonly kind: 'keep'; readonly address: string; readonly port: number; readonly count: number }
  | { readonly kind: 'release' }
  | { readonly kind: 'reach'; readonly addresses: readonly string[]; readonly port: number };

export interface Watched {
  /** Milliseconds: the longest between the ends of two answers, one after the other. */
  readonly outage: number;
  readonly answers: number;
}

export interface Reached {
  /** By monotonic(): when the first one and the last one took a connection. */
  readonly first: number;
  readonly last: number;
}

/** Milliseconds between two questions, and for an answer to one. */
const EVERY = 5;
const PATIENCE = 300;
/** At a time, and milliseconds for each of them. */
const MOST_AT_ONCE = 64;
const TRY = 50;

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
  for (; isWatching; await delay(EVERY)) {
    const one = request(address, port, PATIENCE).then(({ failure }) => {
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
      if (await isTaken(address, port)) {
        last = monotonic();
        first = Math.min(first, last);
      } else missing.push(address);
    }
  };
  await Promise.all(Array.from({ length: MOST_AT_ONCE }, work));
  return { first, last };
}

function isTaken(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const end = (isThere: boolean): void => {
      clearTimeout(timer);
      socket.resetAndDestroy();
      resolve(isThere);
    };
    const timer = setTimeout(() => end(false), TRY);
    socket.once('connect', () => end(true)).on('error', () => setTimeout(() => end(false), 1));
  });
}
