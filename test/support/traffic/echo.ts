// Members that answer with what they got, and requests in which a test decides each byte of the request line and headers.

import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import type { Place } from './traffic.ts';

/** What a member got. */
export interface Echo {
  readonly member: string;
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * A member with this name on a free port of loopback, until the end of the test: `address:port`. It waits with its answer as
 * many milliseconds as the header `x-delay` asks of all members, or `x-delay-in-NAME` of this one.
 */
export async function startEcho(
  t: ExecutionContext<unknown>,
  member: string,
  onEcho: (echo: Echo) => void = () => undefined,
): Promise<string> {
  const server = createServer({ requireHostHeader: false }, async (request, response) => {
    const { method = '', url = '', headers } = request;
    let body = '';
    for await (const chunk of request) body += chunk;
    const echo = { member, method, url, headers: headers as Echo['headers'], body };
    onEcho(echo);
    const wait = Number(headers['x-delay'] ?? headers[`x-delay-in-${member}`] ?? 0);
    await delay(wait, undefined, { ref: false });
    response.end(JSON.stringify(echo));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as { port: number };
  return `127.0.0.1:${port}`;
}

export interface Answer {
  readonly status: number;
  /** By lower-case names; several lines of one name are joined with a comma and a blank. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** What the member got; undefined if HAProxy answered. */
  readonly echo: Echo | undefined;
}

/** One request on a new connection. */
export async function request(
  { address, port, from }: Place,
  url: string,
  {
    method = 'GET',
    headers = {},
    body = '',
  }: {
    readonly method?: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: string;
  } = {},
): Promise<Answer> {
  const socket = connect({ host: address, port, timeout: 5_000, ...(from && { localAddress: from }) });
  socket.once('timeout', () => socket.destroy(new Error('No answer within 5 s')));
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`${method} ${url} HTTP/1.1\r\n${lines.join('')}connection: close\r\n\r\n${body}`, 'latin1');
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  return answerOf(Buffer.concat(chunks).toString('latin1'));
}

/** Parses one HTTP/1 response. */
export function answerOf(text: string): Answer {
  const [head = '', ...rest] = text.split('\r\n\r\n');
  const [status = '', ...lines] = head.split('\r\n');
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1).trim();
    headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`;
  }
  const raw = rest.join('\r\n\r\n');
  const body = headers['transfer-encoding'] === 'chunked' ? unchunked(raw) : raw;
  return {
    status: Number(status.split(' ')[1]),
    headers,
    body,
    echo: body.startsWith('{') ? JSON.parse(Buffer.from(body, 'latin1').toString()) : undefined,
  };
}

function unchunked(text: string): string {
  let body = '';
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf('\r\n', at);
    const size = Number.parseInt(text.slice(at, end), 16);
    if (!(size > 0)) break;
    body += text.slice(end + 2, end + 2 + size);
    at = end + 4 + size;
  }
  return body;
}
