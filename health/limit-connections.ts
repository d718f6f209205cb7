// Bounds the open connections of an HTTP server so that none keeps others out: a new one is always accepted, and if there
// are too many, one of the source that has the most gives way, an idle one first, then the oldest.

import type { Server } from 'node:http';
import type { Socket } from 'node:net';

interface Connection {
  readonly socket: Socket;
  /** The client's address. */
  readonly source: string;
  /** Requests without a complete answer. */
  requests: number;
}

export function limitConnections(server: Server, most: number): void {
  /** Key: an open socket, the oldest first. */
  const open = new Map<Socket, Connection>();
  server.on('connection', (socket) => {
    if (open.size >= most) {
      const { socket: leaving } = leastNeeded([...open.values()]);
      open.delete(leaving);
      leaving.destroy();
    }
    open.set(socket, { socket, source: socket.remoteAddress ?? '', requests: 0 });
    socket.once('close', () => open.delete(socket));
  });
  server.on('request', ({ socket }, response) => {
    const connection = open.get(socket);
    if (connection === undefined) return;
    connection.requests++;
    response.once('close', () => connection.requests--);
  });
}

/** `connections`: at least one, the oldest first. */
function leastNeeded(connections: readonly Connection[]): Connection {
  const counts = new Map<string, number>();
  for (const { source } of connections) counts.set(source, (counts.get(source) ?? 0) + 1);
  const rank = ({ source, requests }: Connection): number =>
    (counts.get(source) ?? 0) + (requests === 0 ? 0.5 : 0);
  return connections.reduce((least, each) => (rank(each) > rank(least) ? each : least));
}
