// Speaks HTTP with the API server: one agent of kept-alive connections, credentials that rotate, several addresses
// of the API server tried in turn. Knows nothing of Kubernetes' objects.
// Owns connections and close().

import type { Agent, IncomingMessage, RequestOptions } from 'node:http';
import type { Agent as TlsAgent } from 'node:https';
import type { ConnectionOptions } from 'node:tls';
import { HeadgateError, messageOf } from '../../errors.ts';
import { http, https, tls } from '../../node-http.ts';
import { quote } from '../../quote.ts';
import { type Credentials, type CredentialsPlace, CredentialsSource } from './credentials.ts';
import { Lines } from './lines.ts';
import { type Environment, proxyOf, throughProxy } from './proxy.ts';

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** `/api/v1/services`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Of a body; a PATCH needs one: `application/apply-patch+yaml`, `application/merge-patch+json` and so on. */
  readonly contentType?: string;
  /** Milliseconds, default 15 s: for the whole answer, and for a stream until its body begins. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface ApiResponse {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Of JSON the value, otherwise the text. */
  readonly body: unknown;
}

export interface ApiStream {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Read it, or abort the request: otherwise its connection stays taken. Errors: API_UNREACHABLE where it breaks off. */
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** The body of an answer as it comes. */
export interface ApiStreams {
  /** Any HTTP status is an answer. Errors: API_UNREACHABLE, API_CREDENTIALS. */
  open(request: ApiRequest): Promise<ApiStream>;
}

export interface KubernetesApi {
  /** Any HTTP status is a response; what kept an answer from coming is an error: API_UNREACHABLE, API_CREDENTIALS. */
  request(request: ApiRequest): Promise<ApiResponse>;
  /** A watch: the status, then the body's lines as they come. */
  stream(request: ApiRequest): Promise<{
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly lines: AsyncIterable<string>;
  }>;
  close(): void;
}

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
/** TCP's own search for a peer that is gone without a word; the kernel then asks once a second, ten times. */
const KEEP_ALIVE = 15_000;
/** Bytes. */
const LARGEST_HEADERS = 32 * 1024;
const LARGEST_BODY = 64 * 1024 * 1024;

export class ApiClient implements KubernetesApi, ApiStreams {
  readonly #options: ApiClientOptions;
  readonly #credentials: CredentialsSource;
  /** The server that answered last, as an index into #servers(). */
  #at = 0;
  /** By the URL of the proxy, '' for none. */
  readonly #agents = new Map<string, Agents>();
  #closed = false;

  constructor(options: ApiClientOptions) {
    this.#options = options;
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
    for (const { http, https } of this.#agents.values()) {
      http.destroy();
      https.destroy();
    }
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
        ? { agent: this.#agent(url, credentials) }
        : { agent: credentials.proxyAgent, ...checkingName(url, credentials.tls) }),
      maxHeaderSize: LARGEST_HEADERS,
      ...(credentials.basic === undefined ? {} : { auth: credentials.basic }),
    };
  }

  /** A new one only where a certificate has changed; requests under way over the old one end as they will. */
  #agent(url: URL, { tls, proxy }: Credentials): Agent {
    const through = proxy ?? proxyOfEnvironment(url, this.#options.env ?? process.env);
    let agents = this.#agents.get(through ?? '');
    if (agents === undefined || !sameTls(agents.tls, tls)) {
      for (const socket of Object.values(agents?.https.freeSockets ?? {}).flat()) socket?.destroy();
      const kept = { keepAlive: true, keepAliveMsecs: KEEP_ALIVE, scheduling: 'lifo' } as const;
      const options = { ...kept, ...throughProxy(through) };
      agents = { tls, http: new http.Agent(options), https: new (https().Agent)({ ...options, ...tls }) };
      this.#agents.set(through ?? '', agents);
    }
    return url.protocol === 'http:' ? agents.http : agents.https;
  }
}

interface Agents {
  readonly tls: Credentials['tls'];
  readonly http: Agent;
  readonly https: TlsAgent;
}

/** The agent for SOCKS checks a server that has an address in place of a name by the name "localhost". */
function checkingName({ hostname }: URL, { servername }: Credentials['tls']): ConnectionOptions {
  const name = typeof servername === 'string' ? servername : hostname.replace(/^\[(.*)\]$/, '$1');
  return { checkServerIdentity: (_, certificate) => tls().checkServerIdentity(name, certificate) };
}

function proxyOfEnvironment(url: URL, env: Environment): string | undefined {
  try {
    return proxyOf(url, env);
  } catch (error) {
    const message = `Cannot go through the proxy of the environment: ${messageOf(error)}`;
    throw new HeadgateError('API_CREDENTIALS', message);
  }
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

function streamOf(answer: IncomingMessage): ApiStream {
  const headers = Object.entries(answer.headers).map(([name, value]) => [name, String(value)]);
  return { status: answer.statusCode ?? 0, headers: Object.fromEntries(headers), chunks: chunksOf(answer) };
}

async function* chunksOf(answer: IncomingMessage): AsyncGenerator<Uint8Array, void, void> {
  try {
    yield* answer as AsyncIterable<Uint8Array>;
  } catch (cause) {
    throw new HeadgateError('API_UNREACHABLE', 'The answer of the API server broke off', {
      retry: 'later',
      cause,
    });
  }
}

async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, void> {
  const lines = new Lines();
  for await (const chunk of chunks) yield* lines.push(chunk);
  const rest = lines.rest();
  if (rest !== '') yield rest;
}

async function textOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    parts.push(chunk);
    length += chunk.length;
    if (length > LARGEST_BODY) {
      throw new HeadgateError('API_UNREACHABLE', `The API server sent more than ${LARGEST_BODY} bytes`);
    }
  }
  return Buffer.concat(parts).toString('utf8');
}

function bodyOf(text: string, headers: ApiResponse['headers']): unknown {
  if (!headers['content-type']?.startsWith('application/json')) return text;
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new HeadgateError('API_UNREACHABLE', 'The API server sent JSON that is none', { cause });
  }
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

function sameTls(a: Credentials['tls'], b: Credentials['tls']): boolean {
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].every((name) => {
    const [one, other] = [a[name], b[name]];
    return one === other || (Buffer.isBuffer(one) && Buffer.isBuffer(other) && one.equals(other));
  });
}
