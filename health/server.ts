// Tells others how the agent is: /metrics for Prometheus, /healthz (the agent lives) and /readyz (traffic is served as
// the objects ask). Read-only.

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { http } from '../agent/node-http.ts';

/** '' where all is well, otherwise what is not, as a sentence. */
export type Verdict = () => string;

export interface HealthServerOptions {
  readonly metrics: { readonly contentType: string; text(): Promise<string> };
  readonly alive: Verdict;
  readonly ready: Verdict;
}

/** Listens on an address and port (0: any free one) and returns the server and where it listens. */
export async function startHealthServer(
  listen: { readonly address: string; readonly port: number },
  options: HealthServerOptions,
): Promise<{ readonly server: Server; readonly address: string }> {
  const server = http.createServer((request, response) => {
    answer(request, response, options).catch((error: unknown) => {
      response.writeHead(500).end(`${error}\n`);
    });
  });
  server.requestTimeout = 10_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(listen.port, listen.address, resolve);
  });
  const { address, port: taken, family } = server.address() as AddressInfo;
  return { server, address: family === 'IPv6' ? `[${address}]:${taken}` : `${address}:${taken}` };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { metrics, alive, ready }: HealthServerOptions,
): Promise<void> {
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.writeHead(405, { allow: 'GET, HEAD' }).end();
    return;
  }
  switch (request.url?.split('?')[0]) {
    case '/metrics':
      response.writeHead(200, { 'content-type': metrics.contentType }).end(await metrics.text());
      return;
    case '/healthz':
      say(response, alive());
      return;
    case '/readyz':
      say(response, ready());
      return;
    default:
      response.writeHead(404, { 'content-type': 'text/plain' }).end('Try /metrics, /healthz or /readyz\n');
  }
}

function say(response: ServerResponse, fault: string): void {
  response.writeHead(fault === '' ? 200 : 503, { 'content-type': 'text/plain' }).end(`${fault || 'ok'}\n`);
}
