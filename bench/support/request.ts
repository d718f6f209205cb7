// One HTTP request on a connection of its own, as short as it can be.

import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

export interface Answer {
  /** '' where it was a 200; otherwise why not. */
  readonly failure: string;
  readonly body: string;
  /** By Date.now(). */
  readonly began: number;
  /** Milliseconds from the start of the connection to its end. */
  readonly took: number;
}

/** Never rejects. A connection that is refused, cut or silent is a failure. */
export function request(
  address: string,
  port: number,
  timeout = 5_000,
  onConnected: () => void = () => undefined,
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
      socket.write('GET / HTTP/1.0\r\n\r\n');
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
 * Asks again and again, `every` so many milliseconds, until `body` comes back; milliseconds since `since`
 * (performance.now()).
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
