// Sends HAProxy one line on its own connection, which HAProxy closes after its answer.

import { connect } from 'node:net';
import { HeadgateError } from '../../base/errors.ts';
import { ReadFirstTimeout } from '../../base/read-first-timeout.ts';

const TIMEOUT_MS = 2_000;

/**
 * The whole answer without line feeds at its end. On a master socket the line must end in `;quit`, because HAProxy
 * keeps this connection open, except after `reload`.
 * Errors: RUNTIME_CONNECT; RUNTIME_CLOSED if the connection breaks; RUNTIME_TIMEOUT.
 */
export function askOnce(
  socketPath: string,
  line: string,
  { timeoutMs = TIMEOUT_MS }: { readonly timeoutMs?: number } = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(socketPath).setEncoding('utf8');
    let answer = '';
    let isConnected = false;
    const fail = (error: HeadgateError): void => {
      timeout.end();
      socket.destroy();
      reject(error);
    };
    const timeout = new ReadFirstTimeout(() => {
      const message = `HAProxy does not answer within ${timeoutMs} ms`;
      fail(new HeadgateError('RUNTIME_TIMEOUT', message, { retry: 'now' }));
    });
    timeout.wait(timeoutMs);
    socket.once('connect', () => {
      isConnected = true;
      socket.write(`${line}\n`);
      timeout.wait(timeoutMs);
    });
    socket.on('data', (chunk) => {
      answer += chunk;
    });
    socket.once('end', () => {
      timeout.end();
      socket.destroy();
      resolve(answer.replace(/\n+$/, ''));
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
