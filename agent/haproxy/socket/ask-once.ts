// Asks HAProxy one thing on a connection of its own, which HAProxy closes after its answer.

import { connect } from 'node:net';
import { HeadgateError } from '../../base/errors.ts';

/**
 * The time for an answer is counted in so many parts. However long this process is without the processor, that is one of
 * them, and what has come meanwhile is read before the next.
 */
const PARTS = 4;

/**
 * The whole answer, up to the end of the connection, without line feeds at its end. On a master socket the line must
 * end in `;quit`, as HAProxy keeps that one open (except for `reload`, which ends it by itself).
 * Errors: RUNTIME_CONNECT, RUNTIME_CLOSED where the connection breaks, RUNTIME_TIMEOUT where it has not ended
 * after `timeoutMs` in which this process ran.
 */
export function askOnce(
  socketPath: string,
  line: string,
  { timeoutMs = 2_000 }: { readonly timeoutMs?: number } = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(socketPath);
    const answer: string[] = [];
    let isConnected = false;
    let parts = 0;
    const timer = setInterval(() => {
      if (++parts < PARTS) return;
      const message = `HAProxy does not answer within ${timeoutMs} ms`;
      fail(new HeadgateError('RUNTIME_TIMEOUT', message, { retry: 'now' }));
    }, timeoutMs / PARTS);
    const fail = (error: HeadgateError): void => {
      clearInterval(timer);
      socket.destroy();
      reject(error);
    };
    socket.setEncoding('utf8');
    socket.once('connect', () => {
      isConnected = true;
      socket.write(`${line}\n`);
    });
    socket.on('data', (chunk: string) => answer.push(chunk));
    socket.once('end', () => {
      clearInterval(timer);
      socket.destroy();
      resolve(answer.join('').replace(/\n+$/, ''));
    });
    socket.once('error', (cause) => {
      fail(
        isConnected
          ? new HeadgateError('RUNTIME_CLOSED', 'HAProxy closed the connection', { retry: 'now', cause })
          : new HeadgateError('RUNTIME_CONNECT', `Cannot connect to "${socketPath}"`, {
              retry: 'later',
              cause,
            }),
      );
    });
  });
}
