// Serves the REST API over TLS to clients with a certificate of the controller's authority. Requests run side by side. Owns
// its socket.

import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { HeadgateError, messageOf } from '../../base/errors.ts';
import { socketAddress } from '../../base/socket-address.ts';
import type { Log } from '../../host/log.ts';
import { https } from '../../host/node-http.ts';
import type { RestSettings } from '../settings/amphora-settings.ts';
import { BodyTooLarge, readBody } from './body.ts';
import type { Credentials } from './own-certificate.ts';
import { type Reply, replyOf, routerError, tooLarge } from './reply.ts';
import { type Call, findRoute, type Route } from './router.ts';

export interface RestServerOptions {
  readonly settings: RestSettings;
  readonly credentials: Credentials;
  readonly routes: readonly Route[];
  readonly log: Log;
}

const MAX_HEADER_BYTES = 16 * 1024;
const HEADERS_TIMEOUT_MS = 10_000;
const HANDSHAKE_TIMEOUT_MS = 10_000;
/** A controller keeps its connection for the next call of a flow. */
const KEEP_ALIVE_MS = 30_000;
/** Each controller process has one or two. */
const MAX_CONNECTIONS = 128;
/** What a client may send in vain after its answer, so that it reads the answer. */
const MAX_WASTED_BYTES = 64 * 1024 * 1024;

export class RestServer {
  readonly #options: RestServerOptions;
  readonly #server: Server;

  constructor(options: RestServerOptions) {
    const { settings, credentials } = options;
    this.#options = options;
    this.#server = https().createServer(
      {
        ...credentials,
        requestCert: true,
        rejectUnauthorized: true,
        handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
        maxHeaderSize: MAX_HEADER_BYTES,
        headersTimeout: HEADERS_TIMEOUT_MS,
        requestTimeout: settings.requestTimeoutMs,
        keepAliveTimeout: KEEP_ALIVE_MS,
      },
      (request, response) => {
        this.#answer(request, response).catch((error: unknown) => {
          options.log.warn('Cannot answer a request of the controller', { error: messageOf(error) });
          response.destroy();
        });
      },
    );
    this.#server.maxConnections = MAX_CONNECTIONS;
    this.#server.on('tlsClientError', (error) =>
      options.log.debug('Refused a client', { error: messageOf(error) }),
    );
  }

  /** Answers `ADDRESS:PORT`. Errors: LISTEN_FAILED. */
  async listen(): Promise<string> {
    const { address, port } = this.#options.settings;
    const listening = once(this.#server, 'listening');
    // As Octavia's agent: "::" is every address, IPv4 too.
    this.#server.listen({ host: address, port });
    await listening.catch((cause: unknown) => {
      const message = `Cannot listen on ${socketAddress(address, port)}`;
      throw new HeadgateError('LISTEN_FAILED', message, { retry: 'later', cause });
    });
    const bound = this.#server.address() as AddressInfo;
    return socketAddress(bound.address, bound.port);
  }

  /** For new connections. */
  use(credentials: Credentials): void {
    this.#server.setSecureContext(credentials);
  }

  /** Resolves when the answers under way are sent. */
  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeIdleConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { log } = this.#options;
    const { method = '', url = '' } = request;
    const reply = await this.#replyTo(request);
    const level = reply.status < 400 || reply.status === 404 ? (method === 'GET' ? 'debug' : 'info') : 'warn';
    log[level]('Answered the controller', { method, path: url.slice(0, 200), status: reply.status });
    send(request, response, reply);
  }

  async #replyTo(request: IncomingMessage): Promise<Reply> {
    const { routes, log } = this.#options;
    const found = findRoute(routes, request.method ?? '', request.url ?? '');
    if (found.kind !== 'route') return routerError(found.kind === 'not found' ? 404 : 405);
    const call: Call = {
      param: (name) => found.params.get(name) ?? '',
      body: (maxBytes) => readBody(request, maxBytes),
    };
    try {
      return await found.route.answer(call);
    } catch (error) {
      if (error instanceof BodyTooLarge) return tooLarge(error.limit);
      if (!(error instanceof HeadgateError)) {
        log.error('A request of the controller failed', { path: found.route.pattern, error });
        return routerError(500);
      }
      return replyOf(error, 'Internal error');
    }
  }
}

function send(request: IncomingMessage, response: ServerResponse, reply: Reply): void {
  const { status, type, body, etag, isLast } = reply;
  response.writeHead(status, {
    'content-type': type,
    'content-length': Buffer.byteLength(body),
    ...(etag !== undefined && { etag }),
    ...(isLast === true && { connection: 'close' }),
  });
  response.end(body);
  // A body that nobody reads would stop the next request of the connection.
  let wasted = 0;
  request.on('data', (chunk: Buffer) => {
    wasted += chunk.length;
    if (wasted > MAX_WASTED_BYTES) request.destroy();
  });
  request.resume();
}
