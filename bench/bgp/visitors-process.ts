// A client of VIPs that routers lead to several hosts, in a process and a network of its own. It opens a new connection every
// 5 ms and reports those that had no answer, or resolves with the time of a VIP's first answer.

import { setTimeout as delay } from 'node:timers/promises';
import { monotonic } from '../api/monotonic.ts';
import { answer, over } from '../support/parent.ts';
import { request } from '../support/request.ts';

export type VisitorsOrder =
  /** Opens connections until `end`, whose answer is Visits. */
  | { readonly kind: 'visit'; readonly address: string; readonly port: number }
  | { readonly kind: 'end' }
  /** Its answer is the time, by monotonic(), of the first answer. */
  | { readonly kind: 'first'; readonly address: string; readonly port: number };

export interface Visits {
  readonly connections: number;
  readonly failed: number;
  /** Milliseconds between the starts of the first and the last connection that failed. */
  readonly during: number;
}

const INTERVAL_MS = 5;
/** Shorter than the second until a SYN that was lost is sent again. */
const TIMEOUT_MS = 700;
const FIRST_INTERVAL_MS = 1;
const FIRST_MOST_MS = 30_000;

let isVisiting = false;
let visiting: Promise<Visits> = Promise.resolve({ connections: 0, failed: 0, during: 0 });

process.on('message', async (order: VisitorsOrder) => {
  if (order.kind === 'first') return answer({ at: await first(order.address, order.port) });
  if (order.kind === 'end') {
    isVisiting = false;
    return answer(await visiting);
  }
  isVisiting = true;
  visiting = visit(order.address, order.port);
  return answer({});
});
await over;
process.exit();

async function visit(address: string, port: number): Promise<Visits> {
  const open: Promise<void>[] = [];
  const failed: number[] = [];
  for (; isVisiting; await delay(INTERVAL_MS)) {
    const began = monotonic();
    open.push(
      request(address, port, TIMEOUT_MS).then(({ failure }) => {
        if (failure !== '') failed.push(began);
      }),
    );
  }
  await Promise.all(open);
  const during = failed.length === 0 ? 0 : Math.max(...failed) - Math.min(...failed);
  return { connections: open.length, failed: failed.length, during };
}

/** Does not wait for one connection before it opens the next: a SYN may be lost before the route is there. */
async function first(address: string, port: number): Promise<number> {
  let at = 0;
  const end = monotonic() + FIRST_MOST_MS;
  for (; at === 0; await delay(FIRST_INTERVAL_MS)) {
    if (monotonic() > end) throw new Error(`${address} port ${port} does not answer`);
    void request(address, port, TIMEOUT_MS).then(({ failure }) => {
      if (failure === '' && at === 0) at = monotonic();
    });
  }
  return at;
}
