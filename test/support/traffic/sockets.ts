// Connections of tests to loopback.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** Resolves when the connection is accepted. Later errors only cause `close`. */
export async function connectTo(address: string, port: number): Promise<Socket> {
  const socket = connect({ host: address, port });
  const accepted = once(socket, 'connect');
  socket.on('error', () => undefined);
  await accepted;
  return socket;
}
