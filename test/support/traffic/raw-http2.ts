// A client of HTTP/2 that does what no library does: it sends any bytes in any header, and heeds no GOAWAY.

import { once } from 'node:events';
import { connect } from 'node:net';
import type { ExecutionContext } from 'ava';
import type { Place } from './traffic.ts';

export interface RawHttp2 {
  /** Sends a GET on a stream of its own; the status of its answer. */
  get(host: string, path: string): Promise<string>;
  /** Bytes of bodies so far. */
  readonly bytes: () => number;
}

const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
const DATA = 0;
const HEADERS = 1;
const SETTINGS = 4;
const WHOLE = 0x5;
/** What HAProxy writes before a status that has no place in the table of RFC 7541. */
const STATUS_BY_NAME = 0x48;
const STATUS_200 = 0x88;

export async function connectRawHttp2(t: ExecutionContext<unknown>, place: Place): Promise<RawHttp2> {
  const socket = connect(place.port, place.address);
  socket.on('error', () => undefined);
  t.teardown(() => socket.destroy());
  await once(socket, 'connect');
  const waiting = new Map<number, (status: string) => void>();
  let [rest, bytes, last] = [Buffer.alloc(0), 0, -1];
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
      const payload = rest.subarray(9, 9 + rest.readUIntBE(0, 3));
      const [type, stream] = [rest[3], rest.readUInt32BE(5)];
      if (type === DATA) bytes += payload.length;
      if (type === HEADERS) waiting.get(stream)?.(statusOf(payload));
      rest = rest.subarray(9 + payload.length);
    }
  });
  socket.write(Buffer.concat([Buffer.from(PREFACE), frame(SETTINGS, 0, 0, Buffer.alloc(0))]));
  return {
    get: (host, path) => {
      last += 2;
      const headers = { ':method': 'GET', ':scheme': 'http', ':authority': host, ':path': path };
      const block = Object.entries(headers).flatMap(([name, value]) => [
        Buffer.from([0x10]),
        text(name),
        text(value),
      ]);
      const answer = new Promise<string>((resolve) => waiting.set(last, resolve));
      socket.write(frame(HEADERS, WHOLE, last, Buffer.concat(block)));
      return answer;
    },
    bytes: () => bytes,
  };
}

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** For at most 126 bytes. */
function text(value: string): Buffer {
  const bytes = Buffer.from(value, 'latin1');
  return Buffer.concat([Buffer.from([bytes.length]), bytes]);
}

function statusOf(block: Buffer): string {
  if (block[0] === STATUS_200) return '200';
  return block[0] === STATUS_BY_NAME ? block.subarray(2, 5).toString() : `index ${block[0]}`;
}
