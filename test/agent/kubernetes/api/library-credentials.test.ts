// Credentials that are left to the client library, against a server of the test's own that says who came: plugins with
// certificates and plugins that hang, an identity provider, a user who acts as another, a proxy.

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { HeadgateError, messageOf } from '../../../../agent/errors.ts';
import { ApiClient, type ApiClientOptions } from '../../../../agent/kubernetes/api/client.ts';

// To load it holds up everything for as long as a connection may take, on a busy machine.
test.before(async () => void (await import('@kubernetes/client-node')));

const API_VERSION = 'client.authentication.k8s.io/v1';

test('The certificate that a credential plugin gives is shown to the API server', async (t) => {
  const place = await placeOf(t);
  const { cert, key } = await certificate(place.directory, 'of-a-plugin');
  const status = { clientCertificateData: cert, clientKeyData: key };
  await writeFile(join(place.directory, 'answer'), credential(status));
  const command = await place.program('plugin', `cat ${place.directory}/answer`);
  t.is((await place.ask({ exec: { apiVersion: API_VERSION, command } })).certificate, 'of-a-plugin');
});

test('A plugin gets its arguments and variables, and is asked again when what it gave is over', async (t) => {
  const place = await placeOf(t);
  const calls = join(place.directory, 'calls');
  const over = (at: number) =>
    credential({ token: 'TOKEN', expirationTimestamp: new Date(at).toISOString() });
  const command = await place.program(
    'plugin',
    `echo "$1 $WHO" >>${calls}\nsed s/TOKEN/$WHO/ ${place.directory}/answer`,
  );
  const exec = { apiVersion: API_VERSION, command, args: ['get'], env: [{ name: 'WHO', value: 'me' }] };
  const count = async () => (await readFile(calls, 'utf8')).split('\n').filter(Boolean).length;
  // The library asks when the time is over; we look at most every half minute, and at once after a 401.
  await writeFile(join(place.directory, 'answer'), over(Date.now() - 1_000));
  t.is((await place.ask({ exec })).authorization, 'Bearer me');
  t.is((await place.ask({ exec })).authorization, 'Bearer me');
  t.is(await count(), 2);
  t.true((await readFile(calls, 'utf8')).startsWith('get me\n'));
});

test('A plugin that hangs is ended with what it has started, and the next one may do better', async (t) => {
  const place = await placeOf(t);
  const pid = join(place.directory, 'pid');
  const command = await place.program('plugin', `sleep 1000 & echo $! >${pid}; echo secret-1; wait`);
  const user = { exec: { apiVersion: API_VERSION, command, interactiveMode: 'Never' } };
  const client = await place.client(user, { pluginTimeoutMs: 1_000 });
  const error = await client.request({ method: 'GET', path: '/' }).then(() => undefined, asFailure);
  t.is(error?.code, 'API_CREDENTIALS');
  t.regex(messageOf(error), /the credential plugin ".*plugin" did not end within 1000 ms/);
  t.notRegex(messageOf(error), /secret/);
  const started = Number(await readFile(pid, 'utf8'));
  await gone(started);
  await writeFile(join(place.directory, 'answer'), credential({ token: 'late' }));
  await place.program('plugin', `cat ${place.directory}/answer`);
  t.is((await client.request({ method: 'GET', path: '/' })).status, 200);
});

test('A plugin that asks a person finds nobody', async (t) => {
  const place = await placeOf(t);
  await writeFile(join(place.directory, 'answer'), credential({ token: 'unasked' }));
  const command = await place.program(
    'plugin',
    `if read -r answer; then exit 1; fi; cat ${place.directory}/answer`,
  );
  t.is((await place.ask({ exec: { apiVersion: API_VERSION, command } })).authorization, 'Bearer unasked');
});

test('The token of an identity provider is sent while it is good', async (t) => {
  const place = await placeOf(t);
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const token = `${part({ alg: 'none' })}.${part({ exp: Math.floor(Date.now() / 1000) + 3600 })}.x`;
  const config = {
    'id-token': token,
    'client-id': 'headgate',
    'refresh-token': 'r',
    'idp-issuer-url': 'https://127.0.0.1:1',
  };
  t.is((await place.ask({ 'auth-provider': { name: 'oidc', config } })).authorization, `Bearer ${token}`);
});

test('A user who acts as another says as whom', async (t) => {
  const place = await placeOf(t);
  const seen = await place.ask({ token: 'own', as: 'another' });
  t.deepEqual([seen.authorization, seen.as], ['Bearer own', 'another']);
});

test('A proxy is gone through, and the API server behind it is still checked', async (t) => {
  const place = await placeOf(t);
  const targets: string[] = [];
  const proxy = createServer();
  proxy.on('connect', ({ url = '' }, client, head) => {
    targets.push(url);
    const [host, port] = url.split(':');
    const server = connect(Number(port), host, () => {
      client.write('HTTP/1.1 200 OK\r\n\r\n');
      server.write(head);
      server.pipe(client).pipe(server);
    });
    for (const socket of [client, server]) socket.on('error', () => undefined);
    client.on('close', () => server.destroy());
  });
  const url = await listening(t, proxy);
  const cluster = { 'proxy-url': `http://127.0.0.1:${url.port}` };
  t.is((await place.ask({ token: 'through' }, cluster)).authorization, 'Bearer through');
  t.deepEqual(targets, [`127.0.0.1:${new URL(place.url).port}`]);
  const other = await certificate(place.directory, 'stranger');
  const unknown = { ...cluster, 'certificate-authority-data': Buffer.from(other.cert).toString('base64') };
  const client = await place.client({ token: 'through' }, {}, unknown);
  const error = await client.request({ method: 'GET', path: '/' }).then(() => undefined, asFailure);
  t.is(error?.code, 'API_UNREACHABLE');
});

interface Seen {
  readonly authorization: string | undefined;
  readonly as: string | undefined;
  /** The name in the client's certificate. */
  readonly certificate: string | undefined;
}

/** A server with TLS that answers with what it saw, and a folder for programs and kubeconfigs. */
async function placeOf(t: ExecutionContext) {
  const directory = await mkdtemp(join(tmpdir(), 'headgate-library-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const own = await certificate(directory, 'server');
  const server = createSecureServer({ ...own, requestCert: true, rejectUnauthorized: false });
  server.on('request', ({ headers, socket }, response) => {
    const { subject } = (socket as TLSSocket).getPeerCertificate();
    const seen = {
      authorization: headers.authorization,
      as: headers['impersonate-user'],
      certificate: subject?.CN,
    };
    response.setHeader('content-type', 'application/json').end(JSON.stringify(seen));
  });
  const { port } = await listening(t, server);
  const url = `https://127.0.0.1:${port}`;
  const client = async (user: object, options: Partial<ApiClientOptions> = {}, cluster: object = {}) => {
    const path = join(directory, `kubeconfig-${Math.random().toString(36).slice(2)}`);
    const authority = Buffer.from(own.cert).toString('base64');
    const config = {
      'current-context': 'c',
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
      clusters: [
        { name: 'c', cluster: { server: url, 'certificate-authority-data': authority, ...cluster } },
      ],
      users: [{ name: 'u', user }],
    };
    await writeFile(path, JSON.stringify(config));
    const made = new ApiClient({ credentials: { kind: 'Kubeconfig', path }, version: '1', ...options });
    t.teardown(() => made.close());
    return made;
  };
  const ask = async (user: object, cluster: object = {}): Promise<Seen> => {
    const made = await client(user, {}, cluster);
    return (await made.request({ method: 'GET', path: '/' })).body as Seen;
  };
  const program = async (name: string, body: string): Promise<string> => {
    const path = join(directory, name);
    await writeFile(path, `#!/bin/sh\n${body}\n`);
    await chmod(path, 0o700);
    return path;
  };
  return { directory, url, client, ask, program };
}

async function listening(t: ExecutionContext, server: Server): Promise<AddressInfo> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return server.address() as AddressInfo;
}

async function certificate(directory: string, name: string): Promise<{ cert: string; key: string }> {
  const [cert, key] = ['crt', 'key'].map((end) => join(directory, `${name}.${end}`)) as [string, string];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '3650'];
  const names = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=IP:127.0.0.1'];
  await promisify(execFile)('openssl', ['req', '-x509', ...curve, ...names, '-keyout', key, '-out', cert]);
  return { cert: await readFile(cert, 'utf8'), key: await readFile(key, 'utf8') };
}

function credential(status: object): string {
  return JSON.stringify({ apiVersion: API_VERSION, kind: 'ExecCredential', status });
}

function asFailure(error: unknown): HeadgateError {
  if (error instanceof HeadgateError) return error;
  throw error;
}

/** Resolves when no process has this id. */
async function gone(pid: number): Promise<void> {
  for (;;) {
    try {
      process.kill(pid, 0);
    } catch {
      return;
    }
    if (/^State:\s+Z/m.test(await readFile(`/proc/${pid}/status`, 'utf8').catch(() => 'State: Z'))) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
