// The HTTP client of the API server: kept-alive connections, credentials that rotate, several servers of one cluster
// tried in turn. Knows nothing of Kubernetes' objects. Owns connections and close().

import type { IncomingMessage } from 'node:http';
import { type Clock, systemClock } from '../../base/clock.ts';
import { HeadgateError } from '../../base/errors.ts';
import { quote } from '../../base/quote.ts';
import { http, https } from '../../host/node-http.ts';
import { ApiAgents } from '../access/api-agents.ts';
import { type Credentials, type CredentialsLocation, CredentialsSource } from '../access/credentials.ts';
import type { Environment } from '../access/proxy.ts';
import { bodyOf, streamOf } from './api-answer.ts';
import type { ApiRequest, ApiResponse, ApiStream, ApiStreams, KubernetesApi } from './kubernetes-api.ts';

export interface ApiClientOptions {
  readonly credentials: CredentialsLocation;
  /** URLs of more API servers of the same cluster, tried in turn after the one that the credentials name. */
  readonly servers?: readonly string[];
  /** Headgate's, for the header User-Agent. */
  readonly version: string;
  /** For a connection and its TLS. */
  readonly connectTimeoutMs?: number;
  readonly clock?: Clock;
  readonly pluginTimeoutMs?: number;
  /** The variables that name proxies; default process.env. */
  readonly env?: Environment;
}

const TIMEOUT_MS = 15_000;
const CONNECT_TIMEOUT_MS = 5_000;
const MAX_HEADER_BYTES = 32 * 1024;

export class ApiClient implements KubernetesApi, ApiStreams {
  readonly #options: ApiClientOptions;
  readonly #credentials: CredentialsSource;
  /** Index of the server that answered last; 0 is the one in the credentials. */
  #at = 0;
  readonly #agents: ApiAgents;
  #closed = false;

  constructor(options: ApiClientOptions) {
    this.#options = options;
    this.#agents = new ApiAgents(options.env ?? process.env);
    this.#credentials = new CredentialsSource(options.credentials, options.pluginTimeoutMs);
  }

  async request(request: ApiRequest): Promise<ApiResponse> {
    const timeout = AbortSignal.timeout(request.timeoutMs ?? TIMEOUT_MS);
    const signal = request.signal === undefined ? timeout : AbortSignal.any([request.signal, timeout]);
    const stream = await this.open({ ...request, signal });
    return { status: stream.status, headers: stream.headers, body: await bodyOf(stream) };
  }

  async open(request: ApiRequest): Promise<ApiStream> {
    const credentials = await this.#credentials.current();
    const answer = await this.#tryServers(request, credentials);
    if (answer.statusCode !== 401) return streamOf(answer);
    const renewed = await this.#credentials.renewed(credentials).catch(() => undefined);
    if (renewed === undefined) return streamOf(answer);
    answer.resume();
    return streamOf(await this.#tryServers(request, renewed));
  }

  close(): void {
    this.#closed = true;
    this.#agents.close();
  }

  /** Each server once, beginning with the one that answered last. */
  async #tryServers(request: ApiRequest, credentials: Credentials): Promise<IncomingMessage> {
    const servers = [...new Set([credentials.server, ...(this.#options.servers ?? [])])];
    for (let tried = 1; ; tried++) {
      const at = this.#at % servers.length;
      const server = servers[at] ?? credentials.server;
      try {
        const answer = await this.#send(request, server, credentials);
        // This server starts, stops or has lost etcd: the next request goes to the next one.
        if (answer.statusCode === 503 && this.#at === at) this.#at = (at + 1) % servers.length;
        return answer;
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error;
        if (this.#at % servers.length === at) this.#at = (at + 1) % servers.length;
        const mayAskAgain = !error.wasSent || request.method === 'GET';
        if (tried < servers.length && mayAskAgain && !request.signal?.aborted) continue;
        const message = `Cannot reach the API server at ${quote(shown(server))}`;
        throw new HeadgateError('API_UNREACHABLE', message, { retry: 'later', cause: firstOf(error.cause) });
      }
    }
  }

  async #send(request: ApiRequest, server: string, credentials: Credentials): Promise<IncomingMessage> {
    try {
      return await this.#sendOnce(request, server, credentials);
    } catch (error) {
      // The server closed a kept connection at the moment it was used again.
      const isStale = error instanceof NoAnswer && error.wasReused && request.method === 'GET';
      if (!isStale || request.signal?.aborted) throw error;
      return this.#sendOnce(request, server, credentials);
    }
  }

  async #sendOnce(request: ApiRequest, server: string, credentials: Credentials): Promise<IncomingMessage> {
    const url = urlOf(server, request);
    const agent = await this.#agents.for(url, credentials);
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const body = request.body === undefined ? undefined : JSON.stringify(request.body);
    const message = (url.protocol === 'http:' ? http : https()).request(url, {
      ...agent,
      method: request.method,
      headers: {
        ...credentials.headers,
        accept: request.accept ?? 'application/json',
        'user-agent': `headgate/${this.#options.version}`,
        ...(body !== undefined && {
          'content-type': request.contentType ?? 'application/json',
          'content-length': Buffer.byteLength(body),
        }),
      },
      maxHeaderSize: MAX_HEADER_BYTES,
    });
    let wasSent = false;
    const fail = (cause: unknown) => reject(new NoAnswer(cause, wasSent, message.reusedSocket));
    const { connectTimeoutMs = CONNECT_TIMEOUT_MS, clock = systemClock } = this.#options;
    const endConnecting = clock.after(connectTimeoutMs, () => {
      message.destroy(new Error('The connection took too long'));
    });
    const endAnswering = clock.after(request.timeoutMs ?? TIMEOUT_MS, () => {
      message.destroy(new Error('The answer took too long'));
    });
    const abort = () => message.destroy(new Error('The request was aborted'));
    const connected = () => {
      wasSent = true;
      endConnecting();
    };
    message.on('socket', (socket) => {
      if (message.reusedSocket) connected();
      else socket.once(url.protocol === 'http:' ? 'connect' : 'secureConnect', connected);
    });
    message.on('response', (answer) => {
      connected();
      endAnswering();
      resolve(answer);
    });
    message.on('error', fail);
    message.on('close', () => {
      endConnecting();
      endAnswering();
      request.signal?.removeEventListener('abort', abort);
      fail(new Error('The connection was closed'));
    });
    if (request.signal?.aborted || this.#closed) abort();
    else request.signal?.addEventListener('abort', abort);
    message.end(body);
    return promise;
  }
}

/** `wasSent`: the server may have received the request, and carried it out. */
class NoAnswer extends Error {
  readonly wasSent: boolean;
  readonly wasReused: boolean;

  constructor(cause: unknown, wasSent: boolean, wasReused: boolean) {
    super('No answer', { cause });
    this.wasSent = wasSent;
    this.wasReused = wasReused;
  }
}

function urlOf(server: string, { path, query }: ApiRequest): URL {
  try {
    const url = new URL(`${server.replace(/\/+$/, '')}${path}`);
    for (const [name, value] of Object.entries(query ?? {})) url.searchParams.set(name, value);
    return url;
  } catch {
    throw new HeadgateError('API_CREDENTIALS', `${quote(shown(server))} is not the URL of an API server`);
  }
}

/** Node tries all addresses of a name and returns all their errors. */
function firstOf(cause: unknown): unknown {
  return cause instanceof AggregateError ? (cause.errors[0] ?? cause) : cause;
}

/** Without a password in it. */
function shown(server: string): string {
  return server.replace(/\/\/[^/]*@/, '//');
}
