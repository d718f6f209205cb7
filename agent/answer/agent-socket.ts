// The agent's own unix socket: the commands send requests over it, in HTTP and JSON. Only the agent's user may connect.

import { once } from 'node:events';
import { lstatSync } from 'node:fs';
import { unlink } from 'node:fs/promises';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { dirname, join } from 'node:path';
import { HeadgateError, messageOf } from '../base/errors.ts';
import { makeFolder } from '../host/make-directory.ts';
import { http } from '../host/node-http.ts';
import type { OwnFile } from '../host/own-files.ts';

export function agentSocketPath(runtimeDir: string): string {
  return join(runtimeDir, 'agent.sock');
}

/** By a question's path, without its leading slash: the function that answers it with plain data. */
export type Answers = Readonly<Record<string, (query: URLSearchParams) => unknown>>;

/** By an order's path, without its leading slash: the function that carries it out and then returns the outcome. */
export type Orders = Readonly<Record<string, (query: URLSearchParams) => Promise<unknown>>>;

/** The socket of this agent; `restore` opens it again if its file was removed or replaced. */
export class AgentSocketFile implements OwnFile {
  readonly kind = 'socket';
  readonly path: string;
  readonly #answers: Answers;
  readonly #orders: Orders;
  #server: Server | undefined;
  #inode: bigint | undefined;
  #isClosed = false;

  constructor(path: string, answers: Answers, orders: Orders) {
    this.path = path;
    this.#answers = answers;
    this.#orders = orders;
  }

  /** Errors: as serveAgentSocket(). */
  readonly restore = async (): Promise<void> => {
    this.#server = await serveAgentSocket(this.path, this.#answers, this.#orders, this.#server);
    this.#inode = inodeOf(this.path);
    if (this.#isClosed) this.#server.close();
  };

  readonly isIntact = (): boolean => inodeOf(this.path) === this.#inode;

  close(): void {
    this.#isClosed = true;
    this.#server?.close();
  }
}

function inodeOf(path: string): bigint | undefined {
  try {
    return lstatSync(path, { bigint: true, throwIfNoEntry: false })?.ino;
  } catch {
    return undefined;
  }
}

/**
 * Questions change nothing and use GET, orders use POST. Closes `former`, an earlier server of the same path; requests
 * that it has received are still answered. Errors: AGENT_RUNNING if another agent answers at the path, FILE_WRITE.
 */
export async function serveAgentSocket(
  path: string,
  answers: Answers,
  orders: Orders = {},
  former?: Server,
): Promise<Server> {
  await makeFolder(dirname(path), 0o711);
  if (await isAnswered(path)) {
    const message = `Another agent answers at "${path}": give this one its own runtimeDir`;
    throw new HeadgateError('AGENT_RUNNING', message, { retry: 'never' });
  }
  // Before the new socket exists, because a server that closes removes the file that has the name of its socket.
  former?.close();
  await unlink(path).catch(() => undefined);
  const server = http.createServer({ maxHeaderSize: MAX_QUESTION_BYTES }, (request, response) => {
    answer(request, response, answers, orders).catch(() => response.destroy());
  });
  const listening = once(server, 'listening');
  // listen() creates the file before it returns, so the file has this mode from the beginning.
  const umask = process.umask(0o177);
  server.listen(path);
  process.umask(umask);
  await listening.catch((cause: unknown) => {
    throw new HeadgateError('FILE_WRITE', `Cannot create socket "${path}"`, { cause });
  });
  return server;
}

const QUESTION_TIMEOUT_MS = 15_000;

/** A question is the path of a request: `why` asks with the headers and the certificates of a client. */
const MAX_QUESTION_BYTES = 256 * 1_024;
/** In the same request. */
const OTHER_BYTES = 1_024;

/** `Request Header Fields Too Large`: the path counts among them. */
const TOO_LONG = 431;

/** Errors: AGENT_UNREACHABLE; AGENT_DENIED; QUESTION_FAILED with the agent's message if it cannot answer. */
export function askAgent(
  path: string,
  question: string,
  query: Readonly<Record<string, string>> = {},
): Promise<unknown> {
  return send('GET', path, question, query, QUESTION_TIMEOUT_MS);
}

/** Resolves when the order is carried out. Errors: AGENT_UNREACHABLE; AGENT_DENIED; ORDER_FAILED with the agent's message. */
export function orderAgent(
  path: string,
  order: string,
  query: Readonly<Record<string, string>>,
  timeoutMs: number,
): Promise<unknown> {
  return send('POST', path, order, query, timeoutMs);
}

function send(
  method: 'GET' | 'POST',
  socketPath: string,
  name: string,
  query: Readonly<Record<string, string>>,
  timeout: number,
): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const unreachable = (cause: unknown): void =>
    reject(isDenied(cause) ? denied(socketPath) : silent(socketPath, cause));
  const path = `/${name}?${new URLSearchParams(query)}`;
  // The agent would close the connection before it has read the question.
  if (path.length > MAX_QUESTION_BYTES - OTHER_BYTES)
    return Promise.reject(tooLong(method === 'GET' ? 'QUESTION_FAILED' : 'ORDER_FAILED'));
  const request = http.request({ method, socketPath, path, timeout }, (response) => {
    const chunks: Buffer[] = [];
    response.on('data', (chunk: Buffer) => chunks.push(chunk));
    response.on('error', unreachable);
    response.on('end', () => {
      const failed = method === 'GET' ? 'QUESTION_FAILED' : 'ORDER_FAILED';
      // Node's server answers so itself, without a body.
      if (response.statusCode === TOO_LONG) {
        reject(
          new HeadgateError(failed, 'The question is too long: the agent takes some 260,000 characters'),
        );
        return;
      }
      try {
        const body: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'));
        if (response.statusCode === 200) resolve(body);
        else reject(new HeadgateError(failed, String((body as { error?: unknown }).error)));
      } catch (error) {
        unreachable(error);
      }
    });
  });
  request.on('timeout', () => request.destroy(new Error(`no answer within ${timeout / 1_000} s`)));
  request.on('error', unreachable);
  request.end();
  return promise;
}

function tooLong(code: 'QUESTION_FAILED' | 'ORDER_FAILED'): HeadgateError {
  return new HeadgateError(code, 'The question is too long: the agent takes some 260,000 characters');
}

function isDenied(cause: unknown): boolean {
  const { code } = cause as NodeJS.ErrnoException;
  return code === 'EACCES' || code === 'EPERM';
}

function denied(path: string): HeadgateError {
  const message = `Permission denied at "${path}": only the user of the agent may ask it: run this command as that user or as root (sudo)`;
  return new HeadgateError('AGENT_DENIED', message, { retry: 'never' });
}

function silent(path: string, cause: unknown): HeadgateError {
  return new HeadgateError('AGENT_UNREACHABLE', `No agent answers at "${path}"`, { cause });
}

export function isAnswered(path: string): Promise<boolean> {
  return askAgent(path, 'ping').then(
    () => true,
    () => false,
  );
}

/** URL needs a base; only the path and the query of a request are used. */
const BASE = 'http://agent';

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  answers: Answers,
  orders: Orders,
): Promise<void> {
  request.resume();
  const reply = (status: number, body: unknown): void => {
    // Before the status is sent: a value that JSON does not have throws, and is answered with 500.
    const text = JSON.stringify(body);
    response.writeHead(status, { 'content-type': 'application/json' }).end(text);
  };
  const url = request.url ?? '/';
  if (!URL.canParse(url, BASE)) {
    reply(400, { error: `Invalid path "${url}"` });
    return;
  }
  const { pathname, searchParams } = new URL(url, BASE);
  const name = pathname.slice(1);
  if (name === 'ping') {
    reply(200, { pid: process.pid });
    return;
  }
  const known = request.method === 'POST' ? orders : answers;
  const run = Object.hasOwn(known, name) ? known[name] : undefined;
  if (run === undefined) {
    reply(404, { error: `This agent does not have "${name}"` });
    return;
  }
  try {
    reply(200, await run(searchParams));
  } catch (error) {
    reply(500, { error: messageOf(error) });
  }
}
