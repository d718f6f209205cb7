// Requests of HTTP/1 byte by byte, and a member that shows the bytes that reached it: for requests that servers read
// differently, and that a load balancer must not pass on so.

import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import type { ExecutionContext } from 'ava';
import type { Place } from './traffic.ts';

export interface RawMember {
  /** `address:port`. */
  readonly place: string;
  /** All bytes since the last call. */
  take(): string;
}

/** Answers the first request of each connection with 200 and a few bytes, and closes. */
export async function startRawMember(t: ExecutionContext<unknown>): Promise<RawMember> {
  let received = '';
  const server = createServer((socket) => {
    let own = '';
    socket.setEncoding('latin1');
    socket.on('error', () => undefined);
    socket.on('data', (text: string) => {
      received += text;
      own += text;
      if (isWhole(own)) socket.end('HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nmember');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  return {
    place: `127.0.0.1:${port}`,
    take: () => {
      const all = received;
      received = '';
      return all;
    },
  };
}

/** The body's end, as HAProxy writes it. */
function isWhole(text: string): boolean {
  const end = text.indexOf('\r\n\r\n');
  if (end === -1) return false;
  if (/^transfer-encoding: chunked\r$/im.test(text.slice(0, end + 2)))
    return /\r\n0\r\n(?:[^\r\n]+\r\n)*\r\n$/.test(text);
  const length = Number(/^content-length: (\d+)\r$/im.exec(text.slice(0, end + 2))?.[1] ?? 0);
  return text.length >= end + 4 + length;
}

/** A server that waits for more bytes gets the end of the connection then. */
const SILENCE_MS = 2_000;

/** Sends these bytes, and reads until the server closes. The status of each answer; none if it only closes. */
export async function rawStatuses({ address, port }: Place, request: string): Promise<readonly string[]> {
  const socket = connect(port, address);
  socket.setEncoding('latin1');
  socket.write(request, 'latin1');
  socket.setTimeout(SILENCE_MS, () => socket.end());
  let text = '';
  try {
    for await (const chunk of socket) text += chunk;
  } catch {
    // A reset after the answer.
  }
  return Array.from(text.matchAll(/^HTTP\/[\d.]+ (\d{3})/gm), ([, status = '']) => status);
}
