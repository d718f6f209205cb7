// Credential plugins against a server of the test's own that says who came: with certificates, that hang, for users who
// act as another, through a proxy; and what cannot be used.

import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import type { Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import ava, { type ExecutionContext } from 'ava';
import { HeadgateError, messageOf } from '../../../../agent/base/errors.ts';
import { ApiClient, type ApiClientOptions } from '../../../../agent/kubernetes/api/client.ts';
import { requires } from '../../../support/basics/requirements.ts';
import { certificate } from '../../../support/traffic/certificate.ts';
import { httpProxy, socksProxy } from '../../../support/traffic/proxies.ts';

const test = requires(ava, { programs: ['openssl'] });

/** Milliseconds that a connection or a plugin may take on a machine that has much else to do. */
const BUSY = 60_000;
const API_VERSION = 'client.authentication.k8s.io/v1';

// Conformance: credentials
test('The client uses the certificate of a credential plugin', async (t) => {
  const place = await placeOf(t);
  const { cert, key } = await certificate(place.directory, 'of-a-plugin');
  const status = { clientCertificateData: cert, clientKeyData: key };
  await writeFile(join(place.directory, 'answer'), credential(status));
  const command = await place.program('plugin', `cat ${place.directory}/answer`);
  t.is((await place.ask({ exec: { apiVersion: API_VERSION, command } })).certificate, 'of-a-plugin');
});

// Conformance: credentials
test('A credential plugin gets its arguments and variables, and runs again when its credential expires', async (t) => {
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
  // When its time is over; the agent looks at most every half minute, and at once after a 401.
  await writeFile(join(place.directory, 'answer'), over(Date.now() - 1_000));
  t.is((await place.ask({ exec })).authorization, 'Bearer me');
  t.is((await place.ask({ exec })).authorization, 'Bearer me');
  t.is(await count(), 2);
  t.true((await readFile(calls, 'utf8')).startsWith('get me\n'));
});

// Conformance: credentials
test('A credential plugin that hangs is killed with its child processes, and runs again later', async (t) => {
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

test('A credential plugin gets no input', async (t) => {
  const place = await placeOf(t);
  await writeFile(join(place.directory, 'answer'), credential({ token: 'unasked' }));
  const command = await place.program(
    'plugin',
    `if read -r answer; then exit 1; fi; cat ${place.directory}/answer`,
  );
  t.is((await place.ask({ exec: { apiVersion: API_VERSION, command } })).authorization, 'Bearer unasked');
});

test("The client sends the impersonation headers with a plugin's token, too", async (t) => {
  const place = await placeOf(t);
  await writeFile(join(place.directory, 'answer'), credential({ token: 'own' }));
  const command = await place.program('plugin', `cat ${place.directory}/answer`);
  const seen = await place.ask({ exec: { apiVersion: API_VERSION, command }, as: 'another' });
  t.deepEqual([seen.authorization, seen.as], ['Bearer own', 'another']);
});

for (const [name, start] of [
  ['http', httpProxy],
  ['socks5', socksProxy],
] as const)
  test(`The client goes through a ${name} proxy with a plugin's token, and still checks the API server`, async (t) => {
    const place = await placeOf(t);
    const proxy = await start();
    t.teardown(proxy.close);
    await writeFile(join(place.directory, 'answer'), credential({ token: 'through' }));
    const command = await place.program('plugin', `cat ${place.directory}/answer`);
    const user = { exec: { apiVersion: API_VERSION, command } };
    const cluster = { 'proxy-url': `${name}://127.0.0.1:${proxy.port}` };
    t.is((await place.ask(user, cluster)).authorization, 'Bearer through');
    t.deepEqual(proxy.targets, [`127.0.0.1:${new URL(place.url).port}`]);
    const other = await certificate(place.directory, 'stranger');
    const unknown = { ...cluster, 'certificate-authority-data': Buffer.from(other.cert).toString('base64') };
    const client = await place.client(user, {}, unknown);
    const error = await client.request({ method: 'GET', path: '/' }).then(() => undefined, asFailure);
    t.is(error?.code, 'API_UNREACHABLE');
  });

const refused = test.macro({
  async exec(t, user: object, cluster: object, why: RegExp) {
    const place = await placeOf(t);
    const client = await place.client(user, {}, cluster);
    const error = await client.request({ method: 'GET', path: '/' }).then(() => undefined, asFailure);
    t.is(error?.code, 'API_CREDENTIALS');
    t.regex(messageOf(error), why);
    t.notRegex(messageOf(error), /secret/);
  },
  title: (what) => `The client reports why it cannot use ${what}`,
});

test(
  'an auth provider',
  refused,
  { 'auth-provider': { name: 'openstack' } },
  {},
  /user "u": "auth-provider" is not supported/,
);
test(
  'a server without TLS',
  refused,
  { token: 'secret' },
  { server: 'http://127.0.0.1:1' },
  /has no TLS, which is allowed only with "insecure-skip-tls-verify: true"/,
);
test(
  'a proxy of another kind',
  refused,
  { token: 'secret' },
  { 'proxy-url': 'ftp://a' },
  /its "proxy-url" is not/,
);

const useless = test.macro({
  async exec(t, body: string, why: RegExp) {
    const place = await placeOf(t);
    const command = await place.program('plugin', body);
    const client = await place.client({ exec: { apiVersion: API_VERSION, command } });
    const error = await client.request({ method: 'GET', path: '/' }).then(() => undefined, asFailure);
    t.is(error?.code, 'API_CREDENTIALS');
    t.regex(messageOf(error), why);
    t.notRegex(messageOf(error), /secret/);
  },
  title: (what) => `The client reports a credential plugin that ${what}`,
});

const printing = (status: object) => `echo '${credential(status)}'`;
test('fails', useless, 'echo secret >&2; exit 3', /the credential plugin ".*plugin" failed with status 3$/);
test('prints something else', useless, 'echo secret', /printed no ExecCredential with a status$/);
test('prints nothing of use', useless, printing({}), /printed neither a token nor a certificate$/);
test(
  'prints half',
  useless,
  printing({ clientKeyData: 'secret' }),
  /printed a certificate or a key, not both$/,
);
test(
  'prints no time',
  useless,
  printing({ token: 'secret', expirationTimestamp: 'soon' }),
  /printed an expirationTimestamp that is not a time$/,
);
test('prints no end', useless, 'yes secret', /printed too much$/);
test(
  'speaks another version',
  useless,
  printing({ token: 'secret' }).replace(API_VERSION, `${API_VERSION}beta1`),
  /printed "client.authentication.k8s.io\/v1beta1", the kubeconfig names "client.authentication.k8s.io\/v1"$/,
);

test('The client reports a missing credential plugin', async (t) => {
  const place = await placeOf(t);
  const client = await place.client({ exec: { apiVersion: API_VERSION, command: './nowhere' } });
  const error = await client.request({ method: 'GET', path: '/' }).then(() => undefined, asFailure);
  t.regex(messageOf(error), /the credential plugin ".*nowhere" cannot be started: ENOENT$/);
});

test('A credential plugin gets interactive false, and the cluster if the kubeconfig provides it', async (t) => {
  const place = await placeOf(t);
  const info = join(place.directory, 'info');
  const command = await place.program(
    'plugin',
    `printf %s "$KUBERNETES_EXEC_INFO" >${info}; ${printing({ token: 'a' })}`,
  );
  const exec = { apiVersion: API_VERSION, command };
  await place.ask({ exec });
  const spec = { interactive: false };
  t.deepEqual(JSON.parse(await readFile(info, 'utf8')), {
    apiVersion: API_VERSION,
    kind: 'ExecCredential',
    spec,
  });
  await place.ask({ exec: { ...exec, provideClusterInfo: true } });
  const { cluster } = JSON.parse(await readFile(info, 'utf8')).spec;
  t.like(cluster, { server: place.url, 'insecure-skip-tls-verify': false });
  t.regex(Buffer.from(cluster['certificate-authority-data'], 'base64').toString(), /BEGIN CERTIFICATE/);
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
    const patient = { connectTimeoutMs: BUSY, pluginTimeoutMs: BUSY, ...options };
    const made = new ApiClient({ credentials: { kind: 'Kubeconfig', path }, version: '1', ...patient });
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
