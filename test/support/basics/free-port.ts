// Ports for programs that do not accept port 0.

import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below Linux's range for clients, so that no connection of another test takes the port before the program listens. */
const [FIRST, LAST] = [10_000, 16_999];
const ATTEMPTS = 50;

/** A TCP port of `address` that was free a moment ago. Tests that run at the same time rarely get the same. */
export async function freePort(address: '127.0.0.1' | '::1' = '127.0.0.1'): Promise<number> {
  for (let left = ATTEMPTS; ; left--) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST + 1));
    const server = createServer().listen(port, address);
    try {
      await once(server, 'listening');
    } catch (error) {
      if (left === 0) throw error;
      continue;
    }
    server.close();
    await once(server, 'close');
    return port;
  }
}
