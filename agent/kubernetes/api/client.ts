// Speaks HTTP with the API server: one agent of kept-alive connections, credentials that rotate, several addresses
// of the API server tried in turn. Knows nothing of Kubernetes' objects.
// Owns connections and close().

import type { IncomingMessage, RequestOptions } from 'node:http';
import type { ConnectionOptions } from 'node:tls';
import { HeadgateError } from '../../base/errors.ts';
import { quote } from '../../base/quote.ts';
import { http, https, tls } from '../../host/node-http.ts';
import { ApiAgents } from '../access/api-agents.ts';
import { type Credentials, type CredentialsPlace, CredentialsSource } from '../access/credentials.ts';
import type { Environment } from '../access/proxy.ts';
import { bodyOf, linesOf, streamOf, textOf } from './answer-body.ts';
import type { ApiRequest, ApiResponse, ApiStream, ApiStreams, KubernetesApi } from './kubernetes-api.ts';

export interface ApiClientOptions {
  readonly credentials: CredentialsPlace;
  /** URLs of more API servers of the same cluster, tried in turn after the one that the credentials name. */
  readonly servers?: readonly string[];
  /** Of Headgate, for the header User-Agent. */
  readonly version: string;
  /** Milliseconds for a connection and its TLS. */
  readonly connectTimeoutMs?: number;
  /** Milliseconds for a credential plugin. */
  readonly pluginTimeoutMs?: number;
  /** Says where there is a proxy; default process.env. */
  readonly env?: Environment;
}

const TIMEOUT = 15_000;
const CONNECT_TIMEOUT = 5_000;
/** Bytes. */
const LARGEST_HEADERS = 32 * 1024;

export class ApiClient implements KubernetesApi, ApiStreams {
  readonly #options: ApiClientOptions;
  readonly #credentials: CredentialsSource;
  /** The server that answered last: the first is the one that the credentials name. */
  #at = 0;
  readonly #agents: ApiAgents;
  #closed = false;

  constructor(options: ApiClientOptions) {
    this.#options = options;
    this.#agents = new ApiAgents(options.env ?? process.env);
    this.#credentials = new CredentialsSource(options.credentials, options.pluginTimeoutMs);
  }

  async request(request: ApiRequest): Promise<ApiResponse> {
    const { signal, end } = deadline(request);
    try {
      const { status, headers, chunks } = await this.open({ ...request, signal });
      const text = await textOf(chunks);
      return { status, headers, body: bodyOf(text, headers) };
    } finally {
      end();
    }
  }

  async stream(request: ApiRequest): ReturnType<KubernetesApi['stream']> {
    const { status, headers, chunks } = await this.open(request);
    return { status, headers, lines: linesOf(chunks) };
  }

  async open(request: ApiRequest): Promise<ApiStream> {
    const credentials = await this.#credentials.current();
    const answer = await this.#ask(request, credentials);
    if (answer.statusCode !== 401) return streamOf(answer);
    const renewed = await this.#credentials.renewed(credentials).catch(() => undefined);
    if (renewed === undefined) return streamOf(answer);
    answer.resume();
    return streamOf(await this.#ask(request, renewed));
  }

  close(): void {
    this.#closed = true;
    this.#agents.close();
  }

  /** Each server once, beginning with the one that answered last. */
  async #ask(request: ApiRequest, credentials: Credentials): Promise<IncomingMessage> {
    const servers = [...new Set([credentials.server, ...(this.#options.servers ?? [])])];
    for (let tried = 1; ; tried++) {
      const at = this.#at % servers.length;
      const server = servers[at] ?? credentials.server;
      try {
        const answer = await this.#send(request, server, credentials);
        // It is there, but it starts, stops or has lost etcd: the next question goes to the next.
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
      // The server closed a kept connection just as we took it.
      const isStale = error instanceof NoAnswer && error.wasReused && request.method === 'GET';
      if (!isStale || request.signal?.aborted) throw error;
      return this.#sendOnce(request, server, credentials);
    }
  }

  #sendOnce(request: ApiRequest, server: string, credentials: Credentials): Promise<IncomingMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const url = urlOf(server, request);
    const body = request.body === undefined ? undefined : JSON.stringify(request.body);
    const message = (url.protocol === 'http:' ? http : https()).request(
      url,
      this.#requestOptions(url, request, body, credentials),
    );
    let wasSent = false;
    const fail = (cause: unknown) => reject(new NoAnswer(cause, wasSent, message.reusedSocket));
    const connecting = setTimeout(() => {
      message.destroy(new Error('It took too long to connect'));
    }, this.#options.connectTimeoutMs ?? CONNECT_TIMEOUT);
    const answering = setTimeout(() => {
      message.destroy(new Error('It took too long to answer'));
    }, request.timeoutMs ?? TIMEOUT);
    const abort = () => message.destroy(new Error('The request was given up'));
    const connected = () => {
      wasSent = true;
      clearTimeout(connecting);
    };
    message.on('socket', (socket) => {
      if (message.reusedSocket) connected();
      else socket.once(url.protocol === 'http:' ? 'connect' : 'secureConnect', connected);
    });
    message.on('response', (answer) => {
      connected();
      clearTimeout(answering);
      resolve(answer);
    });
    message.on('error', fail);
    message.on('close', () => {
      clearTimeout(connecting);
      clearTimeout(answering);
      request.signal?.removeEventListener('abort', abort);
      fail(new Error('The connection was closed'));
    });
    if (request.signal?.aborted || this.#closed) abort();
    else request.signal?.addEventListener('abort', abort);
    message.end(body);
    return promise;
  }

  #requestOptions(
    url: URL,
    request: ApiRequest,
    body: string | undefined,
    credentials: Credentials,
  ): RequestOptions {
    const headers: Record<string, string | number> = {
      ...credentials.headers,
      accept: 'application/json',
      'user-agent': `headgate/${this.#options.version}`,
    };
    if (body !== undefined) {
      headers['content-type'] = request.contentType ?? 'application/json';
      headers['content-length'] = Buffer.byteLength(body);
    }
    return {
      method: request.method,
      headers,
      ...(credentials.proxyAgent === undefined
        ? { agent: this.#agents.for(url, credentials) }
        : { agent: credentials.proxyAgent, ...checkingName(url, credentials.tls) }),
      maxHeaderSize: LARGEST_HEADERS,
      ...(credentials.basic === undefined ? {} : { auth: credentials.basic }),
    };
  }
}

/** The agent for SOCKS checks a server that has an address in place of a name by the name "localhost". */
function checkingName({ hostname }: URL, { servername }: Credentials['tls']): ConnectionOptions {
  const name = typeof servername === 'string' ? servername : hostname.replace(/^\[(.*)\]$/, '$1');
  return { checkServerIdentity: (_, certificate) => tls().checkServerIdentity(name, certificate) };
}

/** `wasSent`: the server may have got the request, and done it. */
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

/** Node tries all addresses of a name and gives all their errors. */
function firstOf(cause: unknown): unknown {
  return cause instanceof AggregateError ? (cause.errors[0] ?? cause) : cause;
}

/** Without a password that someone may have put in. */
function shown(server: string): string {
  return server.replace(/\/\/[^/]*@/, '//');
}

/** A signal for the whole of a request. */
function deadline({ signal, timeoutMs = TIMEOUT }: ApiRequest): { signal: AbortSignal; end: () => void } {
  const controller = new AbortController();
  const abort = () => controller.abort();
  const timer = setTimeout(abort, timeoutMs);
  if (signal?.aborted) abort();
  signal?.addEventListener('abort', abort);
  const end = () => {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
  };
  return { signal: controller.signal, end };
}
