// Asks an address once a millisecond, or less often, each time on a connection of its own, until a given member has answered.

import { setTimeout as delay } from 'node:timers/promises';
import { collect } from '../support/client-start.ts';
import { answer, over } from '../support/parent.ts';
import { request } from '../support/request.ts';
import { monotonic } from './monotonic.ts';

export interface ProbeOrder {
  readonly id: number;
  readonly address: string;
  readonly port: number;
  /** What the member answers. */
  readonly body: string;
  /** Milliseconds between two requests, and for all of them. */
  readonly every: number;
  readonly most: number;
}

export interface ProbeResult {
  readonly id: number;
  /** By monotonic(), when the first answer had come; undefined where none came. */
  readonly answered?: number;
  readonly last: string;
}

/** Milliseconds for one request. */
const PATIENCE = 300;
/** Requests that wait for their answer: all of that time, since kube-proxy drops packets for a Service it has yet to see. */
const OPEN = 400;
/**
 * Of them, those whose connection is there: whoever comes later is served later, and all of them have to be served by
 * whoever is late.
 */
const IN_LINE = 8;

process.on('message', async ({ id, address, port, body, every, most }: ProbeOrder) => {
  const end = performance.now() + most;
  let answered: number | undefined;
  let last = '';
  let open = 0;
  let inLine = 0;
  while (answered === undefined && performance.now() < end) {
    if (open < OPEN && inLine < IN_LINE) {
      open++;
      let isInLine = 0;
      const onConnected = (): void => {
        isInLine = 1;
        inLine++;
      };
      void request(address, port, PATIENCE, onConnected).then((got) => {
        open--;
        inLine -= isInLine;
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
