// Gives each test its own loopback network, because concurrent tests listen on the same ports.

import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { ExecutionContext } from 'ava';

/** The test that listens on this port of a network's last address owns the network. */
const PORT = 16_999;
const LAST = 255;

/** The first three numbers of 127.x.y.0/24, which belongs to the test until it ends; 1 to 254 are free for its use. */
export async function ownNetwork(
  t: Pick<ExecutionContext<unknown>, 'teardown'>,
  random = () => `127.${randomInt(16, 255)}.${randomInt(0, 256)}`,
): Promise<string> {
  for (;;) {
    const network = random();
    const server = createServer().listen(PORT, `${network}.${LAST}`);
    const isOurs = await once(server, 'listening').then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'EADDRINUSE') return false;
        throw error;
      },
    );
    if (!isOurs) continue;
    server.unref();
    t.teardown(() => server.close());
    return network;
  }
}
