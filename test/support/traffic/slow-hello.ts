// A client of TLS whose first message comes in two parts, so that a test decides what happens in between.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { ConnectionOptions } from 'node:tls';
import { type Handshake, handshake } from './tls.ts';
import type { Place } from './traffic.ts';

/** `between` begins when the first part is on its way. Errors: as handshake(), within 30 s. */
export async function slowHandshake(
  place: Place,
  options: ConnectionOptions,
  between: () => Promise<unknown>,
): Promise<Handshake> {
  const socket = connect(place.port, place.address);
  await once(socket, 'connect');
  return handshake(place, { ...options, timeout: 30_000, socket: inParts(socket, between) });
}

/** The socket, with the first write in halves. */
function inParts(socket: Socket, between: () => Promise<unknown>): Duplex {
  let isFirst = true;
  const duplex = new Duplex({
    read: () => undefined,
    write(chunk: Buffer, _encoding, done) {
      const half = isFirst ? Math.floor(chunk.length / 2) : 0;
      isFirst = false;
      if (half === 0) return void socket.write(chunk, done);
      socket.write(chunk.subarray(0, half));
      between().then(() => socket.write(chunk.subarray(half), done), done);
    },
    final(done) {
      socket.end(done);
    },
    destroy(error, done) {
      socket.destroy();
      done(error);
    },
  });
  socket.on('data', (chunk) => duplex.push(chunk));
  socket.on('end', () => duplex.push(null));
  socket.on('error', (error) => duplex.destroy(error));
  return duplex;
}
