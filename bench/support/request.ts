// Sends one short HTTP request on its own connection.

import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

export interface Answer {
  /** The reason if the answer was not a 200; '' if it was. */
  readonly failure: string;
  readonly body: string;
  /** Start of the connection, by Date.now(). */
  readonly began: number;
  /** Milliseconds from the start to the end of the connection. */
  readonly took: number;
}

/** Never rejects: a refused, cut or silent connection is a failure in the answer. */
export function request(
  address: string,
  port: number,
  timeout = 5_000,
  onConnected: () => void = () => undefined,
  host = '',
): Promise<Answer> {
  return new Promise((resolve) => {
    const began = Date.now();
    const since = performance.now();
    let text = '';
    let failure = '';
    const socket = connect({ host: address, port, noDelay: true });
    socket.setEncoding('latin1').setTimeout(timeout, () => {
      failure = 'timeout';
      socket.destroy();
    });
    socket.on('connect', () => {
      onConnected();
      socket.write(`GET / HTTP/1.0\r\n${host && `Host: ${host}\r\n`}\r\n`);
    });
    socket.on('data', (chunk: string) => {
      text += chunk;
    });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      failure = error.code ?? error.message;
    });
    socket.on('close', () => {
      const took = performance.now() - since;
      if (failure === '' && !/^HTTP\/1\.[01] 200 /.test(text))
        failure = text === '' ? 'no answer' : 'not 200';
      resolve({ failure, began, body: text.slice(text.indexOf('\r\n\r\n') + 4).trim(), took });
    });
  });
}

/**
 * Repeats a request every `every` milliseconds until the answer is `body`. Resolves with the milliseconds from `since` (by
 * performance.now()).
 */
export async function untilAnswered(
  address: string,
  port: number,
  body: string,
  since: number,
  { most = 30_000, every = 1 }: { readonly most?: number; readonly every?: number } = {},
): Promise<number> {
  for (;;) {
    const answer = await request(address, port);
    if (answer.failure === '' && answer.body === body) return performance.now() - since;
    if (performance.now() - since > most)
      throw new Error(`${address}:${port} does not answer "${body}": ${answer.failure || answer.body}`);
    if (answer.failure !== '') await delay(every);
  }
}
