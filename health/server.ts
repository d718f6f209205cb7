// The HTTP server: /metrics for Prometheus, /healthz (the agent is alive), /readyz (traffic is served as the objects
// ask), and for operators the status page with its /events. Read-only.
// Why: docs/design/decisions/0054-metrics-by-a-proxy.md

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { extname } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { HeadgateError } from '../agent/base/errors.ts';
import { socketAddress } from '../agent/base/socket-address.ts';
import { http } from '../agent/host/node-http.ts';
import { guardHeaders, whyRefused } from './browser-guard.ts';
import { limitConnections } from './limit-connections.ts';
import { LiveUpdates } from './live-updates.ts';
import { formatFor, takesGzip } from './scrape/exposition.ts';
import { ScrapeRounds, type ScrapeSources } from './scrape/scrape-rounds.ts';

/** The fault as a sentence; '' for none. */
export type Verdict = () => string;

export interface HealthServerOptions {
  /** Where /metrics comes from. */
  readonly metrics: ScrapeSources;
  readonly alive: Verdict;
  readonly ready: Verdict;
  /** The content of a status page, by its query: one event for each field. */
  readonly look: (asked: URLSearchParams) => Promise<object>;
  /** The file in page/ that is the status page. */
  readonly page?: 'index.html' | 'amphora.html';
  /** Between two looks of an open page. */
  readonly intervalMs?: number;
  /** A connection without data for this long is closed. */
  readonly idleTimeoutMs?: number;
}

/** Longer than the interval of keepalives on /events. */
const IDLE_TIMEOUT_MS = 60_000;
const REQUEST_TIMEOUT_MS = 10_000;
/** A slow client's connection holds a few hundred KB. */
const MAX_CONNECTIONS = 64;

interface Content {
  readonly files: ReadonlyMap<string, PageFile>;
  readonly live: LiveUpdates;
  readonly scrapes: ScrapeRounds;
}

/** `address` of the result: `IP:port`. Port 0 stands for any free port. Errors: LISTEN_FAILED. */
export async function startHealthServer(
  listen: { readonly address: string; readonly port: number },
  options: HealthServerOptions,
): Promise<{ readonly server: Server; readonly address: string }> {
  const scrapes = new ScrapeRounds(options.metrics);
  const content: Content = {
    files: readPageFiles(options.page ?? 'index.html'),
    live: new LiveUpdates(options),
    scrapes,
  };
  const server = http.createServer((request, response) => {
    answer(request, response, options, content).catch((error: unknown) => {
      if (response.headersSent) response.destroy();
      else response.writeHead(500, { 'content-type': 'text/plain' }).end(`${error}\n`);
    });
  });
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  server.timeout = options.idleTimeoutMs ?? IDLE_TIMEOUT_MS;
  limitConnections(server, MAX_CONNECTIONS);
  server.once('close', () => scrapes.close());
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) =>
      reject(new HeadgateError('LISTEN_FAILED', cannotListen(listen), { cause })),
    );
    server.listen(listen.port, listen.address, resolve);
  });
  const { address, port } = server.address() as AddressInfo;
  return { server, address: socketAddress(address, port) };
}

function cannotListen({ address, port }: { readonly address: string; readonly port: number }): string {
  return `Cannot listen on ${address} port ${port} (setting "listen")`;
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { alive, ready }: HealthServerOptions,
  { files, live, scrapes }: Content,
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
  const [path = '', query = ''] = (request.url ?? '').split('?', 2);
  switch (path) {
    case '/metrics':
      await answerMetrics(request, response, scrapes);
      return;
    case '/healthz':
      answerHealth(response, alive());
      return;
    case '/readyz':
      answerHealth(response, ready());
      return;
    case '/events':
      live.add(request, response, new URLSearchParams(query));
      return;
    default:
      answerFile(request, response, files.get(path));
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

function answerHealth(response: ServerResponse, fault: string): void {
  response.writeHead(fault === '' ? 200 : 503, { 'content-type': 'text/plain' }).end(`${fault || 'ok'}\n`);
}

function answerFile(request: IncomingMessage, response: ServerResponse, file: PageFile | undefined): void {
  if (file === undefined) {
    response.writeHead(404, { 'content-type': 'text/plain' }).end('Try /, /metrics, /healthz or /readyz\n');
    return;
  }
  const { contentType, body, tag } = file;
  const headers = { etag: tag, 'cache-control': 'no-cache' };
  if (request.headers['if-none-match'] === tag) response.writeHead(304, headers).end();
  else response.writeHead(200, { ...headers, 'content-type': contentType }).end(body);
}

interface PageFile {
  readonly contentType: string;
  readonly body: Buffer;
  /** The header `ETag`. */
  readonly tag: string;
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** The library that draws the charts of the page. */
const CHART_FILES = ['uPlot.esm.js', 'uPlot.min.css'];

/** The files of the status page by their path; `main` is `/`, and other pages are not served. */
function readPageFiles(main: string): ReadonlyMap<string, PageFile> {
  const page = new URL('./page/', import.meta.url);
  const charts = new URL('../node_modules/uplot/dist/', import.meta.url);
  const urls = [
    ...readdirSync(page).map((name) => ({ name, url: new URL(name, page) })),
    ...CHART_FILES.map((name) => ({ name, url: new URL(name, charts) })),
  ];
  const files = new Map<string, PageFile>();
  for (const { name, url } of urls) {
    const contentType = TYPES[extname(name)];
    if (contentType === undefined || (name.endsWith('.html') && name !== main)) continue;
    const body = readFileSync(url);
    const tag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
    files.set(name === main ? '/' : `/${name}`, { contentType, body, tag });
  }
  return files;
}
