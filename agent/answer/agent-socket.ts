// The agent's own unix socket: the commands ask over it, in HTTP and JSON. Only the agent's user may connect.

import { once } from 'node:events';
import { unlink } from 'node:fs/promises';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { dirname, join } from 'node:path';
import { HeadgateError, messageOf } from '../base/errors.ts';
import { makeFolder } from '../host/make-directory.ts';
import { http } from '../host/node-http.ts';

export function agentSocketPath(runtimeDir: string): string {
  return join(runtimeDir, 'agent.sock');
}

/** A question's path, without its leading slash, to the function that answers it with plain data. */
export type Answers = Readonly<Record<string, (query: URLSearchParams) => unknown>>;

/** An order's path, without its leading slash, to the function that carries it out and then tells what became of it. */
export type Orders = Readonly<Record<string, (query: URLSearchParams) => Promise<unknown>>>;

/**
 * Questions change nothing and are asked by GET, orders by POST. `former` is the server whose place this one takes: who
 * is connected to it still gets an answer. Errors: AGENT_RUNNING where another agent answers there already, FILE_WRITE.
 */
export async function serveAgentSocket(
  path: string,
  answers: Answers,
  orders: Orders = {},
  former?: Server,
): Promise<Server> {
  await makeFolder(dirname(path), 0o711);
  if (await isAnswered(path)) {
    throw new HeadgateError(
      'AGENT_RUNNING',
      `Another agent answers at "${path}": give this one its own runtimeDir`,
      {
        retry: 'never',
      },
    );
  }
  // First, because a server that closes removes whatever has the name of its socket.
  former?.close();
  await unlink(path).catch(() => undefined);
  const server = http.createServer((incoming, response) => {
    // Whatever goes wrong with one answer, the agent goes on.
    answer(incoming, response, answers, orders).catch(() => response.destroy());
  });
  const listening = once(server, 'listening');
  // The socket is nobody else's from its first moment: listen() makes the file before it returns.
  const umask = process.umask(0o177);
  server.listen(path);
  process.umask(umask);
  await listening.catch((cause: unknown) => {
    throw new HeadgateError('FILE_WRITE', `Cannot make socket "${path}"`, { cause });
  });
  return server;
}

/** Milliseconds for the answer to a question. */
const PATIENCE = 15_000;

/** Errors: AGENT_UNREACHABLE; QUESTION_FAILED with the agent's own words where it cannot answer. */
export function askAgent(
  path: string,
  question: string,
  query: Readonly<Record<string, string>> = {},
): Promise<unknown> {
  return send('GET', path, question, query, PATIENCE);
}

/**
 * `patience` in milliseconds: an order is answered once it is carried out.
 * Errors: AGENT_UNREACHABLE; ORDER_FAILED with the agent's own words where the order could not be carried out.
 */
export function orderAgent(
  path: string,
  order: string,
  query: Readonly<Record<string, string>>,
  patience: number,
): Promise<unknown> {
  return send('POST', path, order, query, patience);
}

function send(
  method: 'GET' | 'POST',
  path: string,
  question: string,
  query: Readonly<Record<string, string>>,
  patience: number,
): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const unreachable = (cause: unknown): void =>
    reject(new HeadgateError('AGENT_UNREACHABLE', `No agent answers at "${path}"`, { cause }));
  const outgoing = http.request(
    { method, socketPath: path, path: `/${question}?${new URLSearchParams(query)}`, timeout: patience },
    (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', unreachable);
      response.on('end', () => {
        try {
          const body: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'));
          const failed = method === 'GET' ? 'QUESTION_FAILED' : 'ORDER_FAILED';
          if (response.statusCode === 200) resolve(body);
          else reject(new HeadgateError(failed, String((body as { error?: unknown }).error)));
        } catch (error) {
          unreachable(error);
        }
      });
    },
  );
  outgoing.on('timeout', () => outgoing.destroy(new Error(`no answer within ${patience / 1_000} s`)));
  outgoing.on('error', unreachable);
  outgoing.end();
  return promise;
}

/** Whether an agent answers there. */
export function isAnswered(path: string): Promise<boolean> {
  return askAgent(path, 'ping').then(
    () => true,
    () => false,
  );
}

/** What a question's path is read against; its host means nothing. */
const BASE = 'http://agent';

async function answer(
  incoming: IncomingMessage,
  response: ServerResponse,
  answers: Answers,
  orders: Orders,
): Promise<void> {
  incoming.resume();
  const send = (status: number, body: unknown): void => {
    // First: what cannot be told as JSON is answered by another status.
    const text = JSON.stringify(body);
    response.writeHead(status, { 'content-type': 'application/json' }).end(text);
  };
  const asked = incoming.url ?? '/';
  if (!URL.canParse(asked, BASE)) {
    send(400, { error: `This is no question: "${asked}"` });
    return;
  }
  const { pathname, searchParams } = new URL(asked, BASE);
  const question = pathname.slice(1);
  if (question === 'ping') {
    send(200, { pid: process.pid });
    return;
  }
  const known = incoming.method === 'POST' ? orders : answers;
  const found = Object.hasOwn(known, question) ? known[question] : undefined;
  if (found === undefined) {
    send(404, { error: `This agent does not know "${question}"` });
    return;
  }
  try {
    send(200, await found(searchParams));
  } catch (error) {
    send(500, { error: messageOf(error) });
  }
}
