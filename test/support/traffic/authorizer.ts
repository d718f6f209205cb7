// A service that HAProxy asks whether requests are let in: what it answers is the test's choice, and may change.

import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ExecutionContext } from 'ava';
import type { ExternalAuth } from '../../../agent/model/routes.ts';
import { poolName } from '../values/routes.ts';

/** A question that it got. */
export interface Question {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** Names and values as they came. */
  readonly raw: readonly string[];
  readonly body: string;
}

export type Answering = (response: ServerResponse, question: Question) => void;

export interface Authorizer {
  /** `address:port`. */
  readonly place: string;
  readonly questions: Question[];
  /** Requests with the header `x-pass: yes` are let in, unless the test says otherwise. */
  answer: Answering;
  /** No connection is accepted, and open ones end. */
  stop(): Promise<void>;
}

export const byPass: Answering = (response, { headers }) => {
  response.statusCode = headers['x-pass'] === 'yes' ? 200 : 401;
  response.end();
};

export async function startAuthorizer(t: ExecutionContext<unknown>, port = 0): Promise<Authorizer> {
  const questions: Question[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const { method = '', url = '', headers, rawHeaders: raw } = request;
    const question = { method, url, headers, raw, body };
    questions.push(question);
    authorizer.answer(response, question);
  }).listen(port, '127.0.0.1');
  await once(server, 'listening');
  const stop = async (): Promise<void> => {
    const closed = server.listening ? once(server, 'close') : undefined;
    server.close();
    server.closeAllConnections();
    await closed;
  };
  t.teardown(stop);
  const place = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const authorizer: Authorizer = { place, questions, answer: byPass, stop };
  return authorizer;
}

/** As from an Ingress with `auth-url`. */
export function externalAuth(changes: Partial<ExternalAuth> = {}): ExternalAuth {
  return {
    pool: poolName('auth'),
    method: 'GET',
    host: 'auth.example.org',
    path: '/check',
    isPrefix: false,
    letsIn: '2xx',
    requestHeaders: undefined,
    responseHeaders: ['X-Auth-User', 'X-Auth-Groups'],
    refusal: { signIn: '', redirect: '$request_uri', passesRedirects: false, alwaysSetsCookies: false },
    ...changes,
  };
}
