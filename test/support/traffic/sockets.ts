// Connections of tests to loopback.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** Resolves once it is accepted; errors later on are the business of whoever waits for `close`. */
export async function connectTo(address: string, port: number): Promise<Socket> {
  const socket = connect({ host: address, port });
  const accepted = once(socket, 'connect');
  socket.on('error', () => undefined);
  await accepted;
  return socket;
}
