// Occupies a port of a host with another program.

import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import type { ExecutionContext } from 'ava';
import type { Place } from '../traffic/traffic.ts';

/** Ends with the test at the latest. Errors: the port is occupied already. */
export async function occupied(t: ExecutionContext<unknown>, { address, port }: Place): Promise<Server> {
  const server = createServer((socket) => socket.destroy());
  server.listen(port, address);
  await once(server, 'listening');
  t.teardown(() => vacated(server));
  return server;
}

export async function vacated(server: Server): Promise<void> {
  if (!server.listening) return;
  server.close();
  await once(server, 'close');
}
