// Ports for programs that do not accept port 0.

import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below Linux's range for clients, so that no connection of another test takes the port before the program listens. */
const [FIRST, LAST] = [10_000, 16_999];
const ATTEMPTS = 50;
/** HAProxies share a port without an error, so that two tests of a file with the same one would get each other's answers. */
const given = new Set<number>();

/** A TCP port of `address` that was free a moment ago. No test of the same file gets it, and rarely one of another. */
export async function freePort(address: '127.0.0.1' | '::1' = '127.0.0.1'): Promise<number> {
  for (let left = ATTEMPTS; ; left--) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST + 1));
    if (given.has(port)) continue;
    given.add(port);
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
