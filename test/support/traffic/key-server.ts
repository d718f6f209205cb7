// An identity provider's web server with public keys behind URLs, in TLS; each path answers as a test decides, at worst in every
// wrong way that a server has.

import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import type { ExecutionContext } from 'ava';
import type { IssuedCertificate } from './tls.ts';
import type { Place } from './traffic.ts';

export type KeyAnswer = (response: ServerResponse, request: IncomingMessage) => unknown;

export interface KeyServer {
  /** By path. */
  readonly answers: Map<string, KeyAnswer>;
  /** How often each path was asked for. */
  readonly asked: Map<string, number>;
  readonly server: Server;
  /** Ends it with all its connections. */
  readonly close: () => void;
}

export async function startKeyServer(
  t: Pick<ExecutionContext<unknown>, 'teardown'>,
  { address, port }: Place,
  certificate: IssuedCertificate,
): Promise<KeyServer> {
  const answers = new Map<string, KeyAnswer>();
  const asked = new Map<string, number>();
  const server = createServer(certificate, (request, response) => {
    const { url = '' } = request;
    asked.set(url, (asked.get(url) ?? 0) + 1);
    response.on('error', () => undefined);
    const answer = answers.get(url) ?? ((response) => response.writeHead(404).end());
    answer(response, request);
  });
  server.on('tlsClientError', () => undefined).listen(port, address);
  await once(server, 'listening');
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  t.teardown(close);
  return { answers, asked, server, close };
}

export function keys(text: string, headers: Readonly<Record<string, string>> = {}): KeyAnswer {
  return (response) => response.writeHead(200, { 'cache-control': 'no-cache', ...headers }).end(text);
}

/** Wrong ways to answer, each with what the agent says of it. `text`: keys that must not count. */
export function wrongAnswers(text: string): Readonly<Record<string, readonly [KeyAnswer, RegExp]>> {
  return {
    failing: [(response) => response.writeHead(500).end(text), /it answers with status 500/],
    redirected: [
      (response) => response.writeHead(302, { location: '/other' }).end(),
      /status 302, and a redirect is not followed/,
    ],
    page: [keys('<html>Sign in', { 'content-type': 'text/html' }), /its answer is not JSON/],
    empty: [keys('{"keys":[]}'), /it has no key for signatures/],
    list: [keys('[]'), /malformed|no list "keys"/],
    cut: [
      (response) => {
        response.writeHead(200, { 'content-length': text.length }).write(text.slice(0, -10));
        setTimeout(() => response.destroy(), 100);
      },
      /it cannot be read: /,
    ],
    hung: [() => undefined, /it cannot be read: request timed out/],
    slow: [(response) => drip(response, text), /it cannot be read: request timed out/],
    huge: [(response) => flood(response), /it has more than 262144 bytes/],
    bomb: [keys(bomb(), { 'content-encoding': 'gzip' }), /it has more than 262144 bytes/],
  };
}

/** As a text, because a KeyAnswer sends one: 100 MB of blanks, compressed. */
function bomb(): string {
  return gzipSync(Buffer.alloc(100_000_000, ' ')) as unknown as string;
}

/** A byte each second. */
async function drip(response: ServerResponse, text: string): Promise<void> {
  response.writeHead(200);
  for (const byte of text) {
    if (response.destroyed) return;
    response.write(byte);
    await delay(1_000, undefined, { ref: false });
  }
}

/** 10 GB, unless the client leaves. */
async function flood(response: ServerResponse): Promise<void> {
  response.writeHead(200);
  const part = Buffer.alloc(1_000_000, ' ');
  for (let at = 0; at < 10_000 && !response.destroyed; at++)
    if (!response.write(part)) await Promise.race([once(response, 'drain'), once(response, 'close')]);
  response.end();
}
