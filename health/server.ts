// Tells others how the agent is: /metrics for Prometheus, /healthz (the agent lives), /readyz (traffic is served as
// the objects ask) and, for people, the status page with its /events. Read-only.

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { HeadgateError } from '../agent/base/errors.ts';
import { http } from '../agent/host/node-http.ts';
import { guardHeaders, whyRefused } from './browser-guard.ts';
import { LiveUpdates } from './live-updates.ts';
import { type PageFile, pageFiles } from './page-files.ts';
import type { PageView } from './page-model.ts';
import { ScrapeRounds, type ScrapeSources } from './scrape-rounds.ts';
import { formatFor, takesGzip } from './text-format.ts';

/** '' where all is well, otherwise what is not, as a sentence. */
export type Verdict = () => string;

export interface HealthServerOptions {
  /** Where /metrics comes from. */
  readonly metrics: ScrapeSources;
  readonly alive: Verdict;
  readonly ready: Verdict;
  /** What a status page shows that asks for this; in slices. */
  readonly look: (asked: URLSearchParams) => Promise<PageView>;
  /** Milliseconds in which nothing goes or comes, after which a connection is closed. */
  readonly patience?: number;
}

/** Milliseconds; live updates have a sign of life more often. */
const PATIENCE = 60_000;
/** Each that waits for its answer to be taken holds a few hundred KB. */
const MOST_CONNECTIONS = 64;

/** What outlives an answer. */
interface Held {
  readonly files: ReadonlyMap<string, PageFile>;
  readonly live: LiveUpdates;
  readonly scrapes: ScrapeRounds;
}

/** Listens on an address and port (0: any free one) and returns the server and where it listens. Errors: LISTEN_FAILED. */
export async function startHealthServer(
  listen: { readonly address: string; readonly port: number },
  options: HealthServerOptions,
): Promise<{ readonly server: Server; readonly address: string }> {
  const scrapes = new ScrapeRounds(options.metrics);
  const held: Held = { files: pageFiles(), live: new LiveUpdates(options), scrapes };
  const server = http.createServer((request, response) => {
    answer(request, response, options, held).catch((error: unknown) => {
      if (response.headersSent) response.destroy();
      else response.writeHead(500, { 'content-type': 'text/plain' }).end(`${error}\n`);
    });
  });
  server.requestTimeout = 10_000;
  server.timeout = options.patience ?? PATIENCE;
  server.maxConnections = MOST_CONNECTIONS;
  server.once('close', () => scrapes.close());
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) =>
      reject(new HeadgateError('LISTEN_FAILED', cannotListen(listen), { cause })),
    );
    server.listen(listen.port, listen.address, resolve);
  });
  const { address, port: taken, family } = server.address() as AddressInfo;
  return { server, address: family === 'IPv6' ? `[${address}]:${taken}` : `${address}:${taken}` };
}

function cannotListen({ address, port }: { readonly address: string; readonly port: number }): string {
  return `Cannot listen on ${address} port ${port} (setting "listen")`;
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { alive, ready }: HealthServerOptions,
  { files, live, scrapes }: Held,
): Promise<void> {
  for (const [name, value] of Object.entries(guardHeaders)) response.setHeader(name, value);
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.writeHead(405, { allow: 'GET, HEAD' }).end();
    return;
  }
  const refusal = whyRefused(request.headers, request.socket.localAddress ?? '', hostname());
  if (refusal !== '') {
    response.writeHead(403, { 'content-type': 'text/plain' }).end(`${refusal}\n`);
    return;
  }
  const [path = '', question = ''] = (request.url ?? '').split('?', 2);
  switch (path) {
    case '/metrics':
      await answerMetrics(request, response, scrapes);
      return;
    case '/healthz':
      say(response, alive());
      return;
    case '/readyz':
      say(response, ready());
      return;
    case '/events':
      live.take(request, response, new URLSearchParams(question));
      return;
    default:
      show(request, response, files.get(path));
  }
}

async function answerMetrics(
  request: IncomingMessage,
  response: ServerResponse,
  scrapes: ScrapeRounds,
): Promise<void> {
  const format = formatFor(request.headers.accept);
  const gzip = takesGzip(String(request.headers['accept-encoding'] ?? ''));
  const headers = { 'content-type': format.contentType, vary: 'accept, accept-encoding' };
  if (request.method === 'HEAD') {
    response.writeHead(200, headers).end();
    return;
  }
  const file = Readable.from(await scrapes.scrape(format));
  response.writeHead(200, gzip ? { ...headers, 'content-encoding': 'gzip' } : headers);
  await (gzip ? pipeline(file, response) : pipeline(file, createGunzip(), response));
}

function say(response: ServerResponse, fault: string): void {
  response.writeHead(fault === '' ? 200 : 503, { 'content-type': 'text/plain' }).end(`${fault || 'ok'}\n`);
}

function show(request: IncomingMessage, response: ServerResponse, file: PageFile | undefined): void {
  if (file === undefined) {
    response.writeHead(404, { 'content-type': 'text/plain' }).end('Try /, /metrics, /healthz or /readyz\n');
    return;
  }
  const { contentType, body, tag } = file;
  const headers = { etag: tag, 'cache-control': 'no-cache' };
  if (request.headers['if-none-match'] === tag) response.writeHead(304, headers).end();
  else response.writeHead(200, { ...headers, 'content-type': contentType }).end(body);
}
