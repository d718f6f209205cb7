// Every kind of credential and every way that a kubeconfig may name, on a real API server that says whom it sees.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { messageOf } from '../../agent/base/errors.ts';
import { ApiClient, type ApiClientOptions } from '../../agent/kubernetes/api/client.ts';
import { requires } from '../support/basics/requirements.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { certificate } from '../support/traffic/certificate.ts';
import { httpProxy, socksProxy } from '../support/traffic/proxies.ts';

const test = requires(ava, { programs: [...(kubeNeeds().programs ?? []), 'openssl'] });

/** Milliseconds that a connection or a program may take on a machine that has much else to do. */
const BUSY = 60_000;
/** What the certificate of the API server is for. */
const NAME = 'kubernetes.default.svc';
const REVIEW = '/apis/authentication.k8s.io/v1/selfsubjectreviews';

let directory: string;
let kube: Kube;
test.before(async (t) => {
  directory = await mkdtemp(join(tmpdir(), 'headgate-credentials-'));
  const clients = await Promise.all(['first', 'second'].map((name) => certificate(directory, name)));
  await writeFile(join(directory, 'clients.crt'), clients.map(({ cert }) => cert).join(''));
  kube = await startKube(t, {
    users: { named: ['headgate:group'] },
    flags: [`--client-ca-file=${join(directory, 'clients.crt')}`],
  });
});
test.after.always(async () => {
  await kube?.stop();
  await rm(directory, { recursive: true, force: true });
});

interface Place {
  readonly user: object;
  readonly cluster?: object;
  readonly options?: Partial<ApiClientOptions>;
}

let kubeconfigs = 0;

async function client(t: ExecutionContext, { user, cluster = {}, options = {} }: Place): Promise<ApiClient> {
  const path = join(directory, `kubeconfig-${++kubeconfigs}`);
  await writeFile(path, kubeconfig(user, cluster));
  const credentials = { kind: 'Kubeconfig', path } as const;
  const patient = { connectTimeoutMs: BUSY, pluginTimeoutMs: BUSY, ...options };
  const made = new ApiClient({ credentials, version: '0.0.0', ...patient });
  t.teardown(() => made.close());
  return made;
}

function kubeconfig(user: object, cluster: object): string {
  const authority = Buffer.from(kube.ca).toString('base64');
  const known = {
    server: kube.url,
    'certificate-authority-data': authority,
    'tls-server-name': NAME,
    ...cluster,
  };
  return JSON.stringify({
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster: known }],
    users: [{ name: 'u', user }],
  });
}

/** The user that the API server sees, `401` without one. */
async function who(asking: ApiClient): Promise<string> {
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
  const answer = await asking.request({ method: 'POST', path: REVIEW, body, timeoutMs: BUSY });
  const { userInfo } = (answer.body as { status?: { userInfo?: { username: string } } }).status ?? {};
  return userInfo?.username ?? String(answer.status);
}

const failureOf = async (asking: ApiClient): Promise<string> => who(asking).then(() => '', messageOf);

// Conformance: credentials
test('A token, and a token file', async (t) => {
  await writeFile(join(directory, 'token'), 'named-token\n');
  for (const user of [{ token: 'named-token' }, { tokenFile: 'token' }])
    t.is(await who(await client(t, { user })), 'named');
  t.is(await who(await client(t, { user: { token: 'unknown' } })), '401');
});

// Conformance: credentials
test('A client certificate, in the file and beside it', async (t) => {
  const { cert, key } = await certificate(directory, 'stranger');
  const data = (pem: string): string => Buffer.from(pem).toString('base64');
  const stranger = { 'client-certificate-data': data(cert), 'client-key-data': data(key) };
  t.is(await who(await client(t, { user: stranger })), '401');
  const user = { 'client-certificate': 'first.crt', 'client-key': 'first.key' };
  t.is(await who(await client(t, { user })), 'first');
});

// Conformance: credentials
test('The certificate and the token of a credential plugin', async (t) => {
  const plugin = async (name: string, status: object) => {
    const path = join(directory, name);
    const answer = { apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status };
    await writeFile(`${path}.json`, JSON.stringify(answer));
    await writeFile(path, `#!/bin/sh\ncat ${path}.json\n`, { mode: 0o700 });
    return { exec: { apiVersion: answer.apiVersion, command: path, interactiveMode: 'Never' } };
  };
  const token = await plugin('token-plugin', { token: 'named-token' });
  t.is(await who(await client(t, { user: token })), 'named');
  const { cert, key } = await certificate(directory, 'unknown');
  const unknown = await plugin('unknown-plugin', { clientCertificateData: cert, clientKeyData: key });
  t.is(await who(await client(t, { user: unknown })), '401');
});

test('The API server sees the impersonated user and groups', async (t) => {
  const user = { token: kube.adminToken, as: 'other', 'as-groups': ['system:masters'] };
  const asking = await client(t, { user });
  t.is(await who(asking), 'other');
  // The group is believed, too: without it nodes may not be listed.
  t.is((await asking.request({ method: 'GET', path: '/api/v1/nodes', timeoutMs: BUSY })).status, 200);
});

// Conformance: credentials
test('tls-server-name and insecure-skip-tls-verify apply to the check of the server', async (t) => {
  const user = { token: 'named-token' };
  const ca = { 'certificate-authority-data': undefined, 'tls-server-name': undefined };
  const unchecked = { ...ca, 'insecure-skip-tls-verify': true };
  t.is(await who(await client(t, { user, cluster: unchecked })), 'named');
  t.regex(await failureOf(await client(t, { user, cluster: ca })), /self.signed certificate/i);
  const other = await client(t, { user, cluster: { 'tls-server-name': 'api.example.org' } });
  t.regex(await failureOf(other), /does not match certificate's altnames/);
});

// Conformance: credentials
test('An HTTP proxy of the kubeconfig, with a password', async (t) => {
  const proxy = await httpProxy();
  t.teardown(proxy.close);
  const cluster = { 'proxy-url': `http://me:mine@127.0.0.1:${proxy.port}` };
  const asking = await client(t, { user: { token: 'named-token' }, cluster });
  for (let count = 0; count < 3; count++) t.is(await who(asking), 'named');
  // One connection, which is kept.
  t.deepEqual(proxy.targets, [new URL(kube.url).host]);
  t.deepEqual(proxy.authorizations, [`Basic ${Buffer.from('me:mine').toString('base64')}`]);
});

// Conformance: credentials
test('An HTTP proxy of the environment, but not for the loopback nor for NO_PROXY', async (t) => {
  const proxy = await httpProxy();
  t.teardown(proxy.close);
  const user = { token: 'named-token' };
  const { port } = new URL(kube.url);
  const env = { HTTPS_PROXY: `http://127.0.0.1:${proxy.port}`, NO_PROXY: '192.0.2.0/24' };
  t.is(await who(await client(t, { user, options: { env } })), 'named');
  t.deepEqual(proxy.targets, []);
  const cluster = { server: `https://${NAME}:${port}` };
  t.is(await who(await client(t, { user, cluster, options: { env } })), 'named');
  t.deepEqual(proxy.targets, [`${NAME}:${port}`]);
  const wrong = { HTTPS_PROXY: 'socks5://127.0.0.1:1' };
  const refused = await client(t, { user, cluster, options: { env: wrong } });
  t.regex(await failureOf(refused), /HTTPS_PROXY is not the URL of an HTTP proxy/);
});

test('A proxy that is missing or refuses the client is API_UNREACHABLE', async (t) => {
  const proxy = await httpProxy();
  const gone = { 'proxy-url': `http://127.0.0.1:${proxy.port}` };
  proxy.close();
  const asking = await client(t, { user: { token: 'named-token' }, cluster: gone });
  t.regex(await failureOf(asking), /^Cannot reach the API server at ".*": .*ECONNREFUSED/);
});

// Conformance: credentials
test('A SOCKS proxy of the kubeconfig', async (t) => {
  const proxy = await socksProxy();
  t.teardown(proxy.close);
  const cluster = { 'proxy-url': `socks5://127.0.0.1:${proxy.port}` };
  const asking = await client(t, { user: { token: 'named-token' }, cluster });
  t.is(await who(asking), 'named');
  t.deepEqual(proxy.targets, [new URL(kube.url).host]);
  // The certificate is good for the address, too.
  const byAddress = { ...cluster, 'tls-server-name': undefined };
  const other = await client(t, { user: { token: 'named-token' }, cluster: byAddress });
  t.is(await who(other), 'named');
});
