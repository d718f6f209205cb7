// Sends requests to an address, each on its own connection, until a given member has answered.

import { setTimeout as delay } from 'node:timers/promises';
import { collect } from '../support/client-start.ts';
import { answer, over } from '../support/parent.ts';
import { request } from '../support/request.ts';
import { monotonic } from './monotonic.ts';

export interface ProbeOrder {
  readonly id: number;
  readonly address: string;
  readonly port: number;
  /** The member's answer. */
  readonly body: string;
  /** Milliseconds between two requests, and for all of them. */
  readonly every: number;
  readonly most: number;
}

export interface ProbeResult {
  readonly id: number;
  /** The time of the first answer by monotonic(); undefined without an answer. */
  readonly answered?: number;
  readonly last: string;
}

const REQUEST_TIMEOUT_MS = 300;
/** Open requests: kube-proxy drops packets for a Service without rules, so those requests wait until their timeout. */
const MAX_REQUESTS = 400;
/** Open connections: more would form a queue that a late contender has to serve first. */
const MAX_CONNECTIONS = 8;

process.on('message', async ({ id, address, port, body, every, most }: ProbeOrder) => {
  const end = performance.now() + most;
  let answered: number | undefined;
  let last = '';
  let requests = 0;
  let connections = 0;
  while (answered === undefined && performance.now() < end) {
    if (requests < MAX_REQUESTS && connections < MAX_CONNECTIONS) {
      requests++;
      let own = 0;
      const onConnected = (): void => {
        own = 1;
        connections++;
      };
      void request(address, port, REQUEST_TIMEOUT_MS, onConnected).then((got) => {
        requests--;
        connections -= own;
        last = got.failure || got.body;
        if (got.failure === '' && got.body.replace('::ffff:', '') === body) answered ??= monotonic();
      });
    }
    await delay(every);
  }
  const result: ProbeResult = { id, last, ...(answered === undefined ? {} : { answered }) };
  answer(result);
  collect();
});
await over;
process.exit();
