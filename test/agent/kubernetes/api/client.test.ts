// The client of the API server against a server of the test's own: credentials, connections and what goes wrong.

import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { HeadgateError, messageOf } from '../../../../agent/base/errors.ts';
import { ApiClient, type ApiClientOptions } from '../../../../agent/kubernetes/api/client.ts';

// To load it holds up everything for as long as an answer may take, on a busy machine.
test.before(async () => void (await import('@kubernetes/client-node')));

/** Milliseconds that a connection may take on a machine that has much else to do. */
const BUSY = 60_000;

type Reply = (request: IncomingMessage, response: ServerResponse, body: string) => void;

interface Place {
  readonly url: string;
  readonly server: Server;
  /** `METHOD url`, as they came. */
  readonly seen: string[];
}

const ok: Reply = (_, response) => {
  response.setHeader('content-type', 'application/json').end('{"kind":"Status"}');
};

async function serve(t: ExecutionContext, reply: Reply): Promise<Place> {
  const seen: string[] = [];
  const server = createServer(async (request, response) => {
    seen.push(`${request.method} ${request.url}`);
    let body = '';
    for await (const chunk of request) body += chunk;
    reply(request, response, body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as { port: number }).port}`, server, seen };
}

async function directoryOf(t: ExecutionContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'headgate-client-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

async function clientOf(
  t: ExecutionContext,
  url: string,
  user: object = { token: 'secret-1' },
  options: Partial<ApiClientOptions> = {},
): Promise<ApiClient> {
  const path = join(await directoryOf(t), 'kubeconfig');
  await writeFile(path, kubeconfigOf(url, user));
  const patient = { connectTimeoutMs: BUSY, ...options };
  const client = new ApiClient({ credentials: { kind: 'Kubeconfig', path }, version: '1.2.3', ...patient });
  t.teardown(() => client.close());
  return client;
}

function kubeconfigOf(server: string, user: object): string {
  return JSON.stringify({
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster: { server, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'u', user }],
  });
}

async function failureOf(work: Promise<unknown>): Promise<HeadgateError> {
  const error = await work.then(
    () => undefined,
    (cause: unknown) => cause,
  );
  if (error instanceof HeadgateError) return error;
  throw new Error('No HeadgateError', { cause: error });
}

const get = { method: 'GET', path: '/api/v1/nodes' } as const;

test('request() sends user agent, token, query and body, and gives any status as a response', async (t) => {
  let came: { headers: IncomingMessage['headers']; body: string } | undefined;
  const { url, seen } = await serve(t, (request, response, body) => {
    came = { headers: request.headers, body };
    response
      .writeHead(409, { 'content-type': 'application/json', 'X-Thing': 'a' })
      .end('{"reason":"Conflict"}');
  });
  const client = await clientOf(t, `${url}/`);
  const response = await client.request({
    method: 'PATCH',
    path: '/api/v1/namespaces/a/services/b/status',
    query: { fieldManager: 'headgate', labelSelector: 'a=b,c' },
    body: { é: 1 },
    contentType: 'application/apply-patch+yaml',
  });
  t.deepEqual(
    [response.status, response.body, response.headers['x-thing']],
    [409, { reason: 'Conflict' }, 'a'],
  );
  t.deepEqual(seen, [
    'PATCH /api/v1/namespaces/a/services/b/status?fieldManager=headgate&labelSelector=a%3Db%2Cc',
  ]);
  t.is(came?.headers['user-agent'], 'headgate/1.2.3');
  t.is(came?.headers.authorization, 'Bearer secret-1');
  t.is(came?.headers['content-type'], 'application/apply-patch+yaml');
  t.is(came?.body, '{"é":1}');
});

test('open() gives the body as it arrives, and an error if it breaks off', async (t) => {
  const speak = async (response: ServerResponse) => {
    response.writeHead(200);
    for (const part of ['{"a"', ':1}\n{"b":2', '}\n\n{"c']) {
      response.write(part);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    response.destroy();
  };
  const { url } = await serve(t, (_, response) => void speak(response));
  const client = await clientOf(t, url);
  const { status, chunks } = await client.open(get);
  let seen = '';
  const error = await failureOf(
    (async () => {
      for await (const chunk of chunks) seen += Buffer.from(chunk).toString();
    })(),
  );
  t.deepEqual(
    [status, seen, error.code, error.retry],
    [200, '{"a":1}\n{"b":2}\n\n{"c', 'API_UNREACHABLE', 'later'],
  );
});

test('request() without an answer is API_UNREACHABLE, with the server but no secret in the message', async (t) => {
  const { url, server } = await serve(t, ok);
  server.close();
  const client = await clientOf(t, url.replace('//', '//name:secret-2@'));
  const error = await failureOf(client.request(get));
  t.is(error.code, 'API_UNREACHABLE');
  t.true(messageOf(error).includes(`Cannot reach the API server at "${url}/`.slice(0, -1)), messageOf(error));
  t.regex(messageOf(error), /ECONNREFUSED/);
  t.notRegex(`${messageOf(error)} ${error.stack}`, /secret/);
});

test('request() ends after its timeout if the server is silent', async (t) => {
  const { url } = await serve(t, () => undefined);
  const client = await clientOf(t, url);
  t.is((await failureOf(client.request({ ...get, timeoutMs: 100 }))).code, 'API_UNREACHABLE');
  t.is((await failureOf(client.open({ ...get, timeoutMs: 100 }))).code, 'API_UNREACHABLE');
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 50);
  t.is((await failureOf(client.request({ ...get, signal: controller.signal }))).code, 'API_UNREACHABLE');
});

test('request() ends after its timeout in the middle of a body', async (t) => {
  const { url } = await serve(t, (_, response) => void response.writeHead(200).write('{'));
  const client = await clientOf(t, url);
  t.is((await failureOf(client.request({ ...get, timeoutMs: 100 }))).code, 'API_UNREACHABLE');
});

test('request() reuses a connection; if the server has closed it, only a GET is repeated', async (t) => {
  let connections = 0;
  let kill = false;
  const { url, server, seen } = await serve(t, (request, response, body) => {
    if (kill) {
      kill = false;
      request.socket.destroy();
    } else ok(request, response, body);
  });
  server.on('connection', () => connections++);
  const client = await clientOf(t, url);
  for (let count = 0; count < 3; count++) await client.request(get);
  t.is(connections, 1);
  kill = true;
  t.is((await client.request(get)).status, 200);
  t.is(connections, 2);
  kill = true;
  const order = await failureOf(client.request({ method: 'POST', path: '/api/v1/events', body: {} }));
  t.is(order.code, 'API_UNREACHABLE');
  t.is(seen.filter((line) => line.startsWith('POST')).length, 1);
});

// Conformance: several API servers
test('request() tries the servers in turn, and stays with the one that answers', async (t) => {
  const [dead, second, third] = [await serve(t, ok), await serve(t, ok), await serve(t, ok)];
  dead.server.close();
  const client = await clientOf(t, dead.url, undefined, { servers: [second.url, third.url, dead.url] });
  // It never reached the first, so that the second may have it.
  t.is((await client.request({ method: 'POST', path: '/api/v1/events', body: {} })).status, 200);
  for (let count = 0; count < 3; count++) t.is((await client.request(get)).status, 200);
  t.deepEqual([dead.seen.length, second.seen.length, third.seen.length], [0, 4, 0]);
  second.server.closeAllConnections();
  second.server.close();
  for (let count = 0; count < 3; count++) t.is((await client.request(get)).status, 200);
  t.deepEqual([dead.seen.length, second.seen.length, third.seen.length], [0, 4, 3]);
});

// Conformance: several API servers
test('request() skips a server that answered 503', async (t) => {
  const first = await serve(t, (_, response) => void response.writeHead(503).end());
  const second = await serve(t, ok);
  const client = await clientOf(t, first.url, undefined, { servers: [second.url] });
  t.is((await client.request(get)).status, 503);
  t.is((await client.request(get)).status, 200);
});

// Conformance: credentials
test('A credential plugin runs once, and again after a 401; no error has its output', async (t) => {
  const directory = await directoryOf(t);
  const [plugin, calls] = [join(directory, 'plugin'), join(directory, 'calls')];
  const write = (body: string) => writeFile(plugin, `#!/bin/sh\necho >>${calls}\n${body}\n`);
  const credential = (token: string) =>
    `echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"${token}"}}'`;
  await write(credential('secret-old'));
  await chmod(plugin, 0o700);
  const { url, seen } = await serve(t, (request, response) => {
    response.writeHead(request.headers.authorization === 'Bearer secret-new' ? 200 : 401).end();
  });
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: plugin, interactiveMode: 'Never' };
  const client = await clientOf(t, url, { exec });
  t.is((await client.request(get)).status, 401);
  t.is(seen.length, 2);
  await write(credential('secret-new'));
  const answers = await Promise.all([1, 2, 3].map(() => client.request(get)));
  t.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200],
  );
  await write('echo secret-3; echo secret-4 >&2; exit 1');
  const other = await clientOf(t, url, { exec });
  const error = await failureOf(other.request(get));
  t.is(error.code, 'API_CREDENTIALS');
  t.regex(error.message, /the credential plugin ".*plugin.*" failed/);
  t.notRegex(`${messageOf(error)} ${error.stack}`, /secret/);
  await write('echo secret-5');
  t.notRegex(messageOf(await failureOf(other.request(get))), /secret/);
});

test('request() with an unusable kubeconfig is API_CREDENTIALS, without its content', async (t) => {
  const { url } = await serve(t, ok);
  const path = join(await directoryOf(t), 'kubeconfig');
  const client = new ApiClient({ credentials: { kind: 'Kubeconfig', path }, version: '1' });
  t.teardown(() => client.close());
  const missing = await failureOf(client.request(get));
  t.is(missing.code, 'API_CREDENTIALS');
  t.regex(missing.message, /ENOENT/);
  for (const text of [
    'users: [{token: secret-6',
    'secret-7',
    '{}',
    kubeconfigOf('', { token: 'secret-8' }),
  ]) {
    await writeFile(path, text);
    const error = await failureOf(client.request(get));
    t.is(error.code, 'API_CREDENTIALS', text);
    t.notRegex(messageOf(error), /secret/);
  }
  await writeFile(path, kubeconfigOf(url, { token: 'secret-9' }));
  t.is((await client.request(get)).status, 200);
});

// Conformance: connection reset, 5xx, 429, 401, a list that fails
// Conformance: credentials
test('request() reads the token file again after a 401, of a kubeconfig and of a pod', async (t) => {
  const directory = await directoryOf(t);
  let token = 'one';
  const { url } = await serve(t, (request, response) => {
    response.writeHead(request.headers.authorization === `Bearer ${token}` ? 200 : 401).end();
  });
  const account = join(directory, 'var/run/secrets/kubernetes.io/serviceaccount');
  await mkdir(account, { recursive: true });
  const tokenFile = join(account, 'token');
  await writeFile(tokenFile, 'one\n');
  const client = await clientOf(t, url, { token: 'of no use', tokenFile });
  t.is((await client.request(get)).status, 200);
  token = 'two';
  t.is((await client.request(get)).status, 401);
  await writeFile(tokenFile, 'two\n');
  t.is((await client.request(get)).status, 200);
});

test('request() fails after close()', async (t) => {
  const { url } = await serve(t, ok);
  const client = await clientOf(t, url);
  await client.request(get);
  client.close();
  t.is((await failureOf(client.request(get))).code, 'API_UNREACHABLE');
});
