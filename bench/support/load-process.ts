// A process that opens connections with one request each at a steady rate, without waiting for earlier answers.

import { setTimeout as delay } from 'node:timers/promises';
import { collect } from './client-start.ts';
import { answer, over } from './parent.ts';
import { type Answer, request } from './request.ts';

export interface LoadOrder {
  /** Used in turns. */
  readonly addresses: readonly string[];
  readonly port: number;
  /** Connections a second. */
  readonly rate: number;
  readonly seconds: number;
}

export interface LoadResult {
  readonly requests: number;
  readonly failures: readonly {
    readonly why: string;
    /** Start of the connection, by Date.now(). */
    readonly began: number;
  }[];
  /** Milliseconds of each request, in the order of their ends. */
  readonly took: readonly number[];
}

process.on('message', async (order: LoadOrder) => {
  const answers: Answer[] = [];
  const open = new Set<Promise<void>>();
  const began = performance.now();
  for (let sent = 0; sent < order.rate * order.seconds; ) {
    const due = Math.min(order.rate * order.seconds, ((performance.now() - began) * order.rate) / 1_000);
    for (; sent < due; sent++) {
      const address = order.addresses[sent % order.addresses.length] ?? '';
      const one = request(address, order.port).then((answer) => {
        answers.push(answer);
        open.delete(one);
      });
      open.add(one);
    }
    await delay(1);
  }
  await Promise.all(open);
  const result: LoadResult = {
    requests: answers.length,
    failures: answers
      .filter(({ failure }) => failure !== '')
      .map(({ failure, began }) => ({ why: failure, began })),
    took: answers.map(({ took }) => took),
  };
  answer(result);
  collect();
});
await over;
process.exit();
