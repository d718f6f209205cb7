// Clients of the benchmarks and of the demonstration of an amphora.

import { connect, type Socket } from 'node:net';
import type { Side } from './sides.ts';

/** The body of one answer, asked from a client's own address. */
export function answerFor({ vip, port }: Side, localAddress: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: vip, port, localAddress });
    let text = '';
    socket.on('connect', () => socket.write('GET / HTTP/1.0\r\n\r\n'));
    socket.on('data', (chunk) => {
      text += chunk;
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(text.slice(text.indexOf('\r\n\r\n') + 4).trim()));
  });
}

/** A client that has sent half a request. */
export function longConnection({ vip, port }: Side): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: vip, port });
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.on('error', () => undefined);
      socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nbegin', () =>
        resolve(socket),
      );
    });
  });
}
