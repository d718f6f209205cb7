// Credentials that are read without the client library, compared with what the library makes of the same files.

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { RequestOptions } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { KubeConfig } from '@kubernetes/client-node';
import ava, { type TestFn } from 'ava';
import { parse as parseYaml } from 'yaml';
import {
  type Credentials,
  plainCredentials,
  podConfig,
  readPlainKubeconfig,
} from '../../../../agent/kubernetes/access/plain-credentials.ts';

const test = ava as TestFn<{ readonly directory: string }>;
const SERVER = 'https://192.0.2.1:6443';

test.beforeEach(async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'headgate-credentials-'));
  t.context = { directory };
  for (const name of ['ca.pem', 'cert.pem', 'key.pem']) await writeFile(join(directory, name), `of ${name}`);
  await writeFile(join(directory, 'token'), 'from-a-file\n');
});
test.afterEach.always((t) => rm(t.context.directory, { recursive: true, force: true }));

function kubeconfig(cluster: object, user: object | null, more: object = {}): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'here',
    contexts: [
      { name: 'there', context: { cluster: 'other', user: 'other' } },
      { name: 'here', context: { cluster: 'c', user: 'u', namespace: 'n' } },
    ],
    clusters: [
      { name: 'other', cluster: { server: 'https://192.0.2.9' } },
      { name: 'c', cluster },
    ],
    users: [
      { name: 'other', user: { exec: { command: 'login' } } },
      { name: 'u', user },
    ],
    ...more,
  });
}

async function byLibrary(config: KubeConfig): Promise<Credentials> {
  const options: RequestOptions = { headers: {} };
  await config.applyToHTTPSOptions(options);
  const { ca, cert, key, servername, rejectUnauthorized } = options;
  const tls = { ca, cert, key, servername, rejectUnauthorized };
  return {
    server: config.getCurrentCluster()?.server ?? '',
    headers: Object.fromEntries(
      Object.entries(options.headers ?? {}).map(([name, value]) => [name, String(value).trim()]),
    ),
    basic: options.auth ?? undefined,
    tls: Object.fromEntries(Object.entries(tls).filter(([, value]) => value !== undefined)),
    proxy: undefined,
    proxyAgent: undefined,
  };
}

const asTheLibrary = test.macro({
  async exec(t, cluster: object, user: object) {
    const path = join(t.context.directory, 'kubeconfig');
    const text = kubeconfig({ server: SERVER, ...cluster }, user);
    await writeFile(path, text);
    const config = readPlainKubeconfig(text, path);
    if (config === undefined) return t.fail('It is not plain');
    const library = new KubeConfig();
    library.loadFromFile(path);
    t.deepEqual(await plainCredentials(config), await byLibrary(library));
  },
  title: (what) => `Without the library the same comes of ${what}`,
});

const base64 = (text: string): string => Buffer.from(text).toString('base64');

test('a token', asTheLibrary, {}, { token: 'secret' });
test('nobody', asTheLibrary, {}, {});
test('a server with a slash behind it', asTheLibrary, { server: `${SERVER}/` }, { token: 'secret' });
test('a server that is not checked', asTheLibrary, { 'insecure-skip-tls-verify': true }, { token: 'secret' });
test('a server of another name', asTheLibrary, { 'tls-server-name': 'api.example.org' }, { token: 'secret' });
test('a name and a password', asTheLibrary, {}, { username: 'one', password: 'secret' });
test(
  'certificates in the file',
  asTheLibrary,
  { 'certificate-authority-data': base64('ca') },
  { 'client-certificate-data': base64('cert'), 'client-key-data': base64('key') },
);
test(
  'certificates in files beside it, which have precedence',
  asTheLibrary,
  { 'certificate-authority': 'ca.pem', 'certificate-authority-data': base64('other') },
  { 'client-certificate': 'cert.pem', 'client-key': 'key.pem', 'client-key-data': base64('other') },
);
test('empty texts', asTheLibrary, { 'certificate-authority': '' }, { token: '', username: '' });
test('extensions', asTheLibrary, { extensions: [{ name: 'x', extension: {} }] }, { token: 'secret' });

test('a user who acts as another', asTheLibrary, {}, { token: 'secret', as: 'other' });

test('The groups and more of whom a user acts as are said, too, as client-go says them', async (t) => {
  const user = {
    as: 'other',
    'as-uid': '7',
    'as-groups': ['a', 'b'],
    'as-user-extra': { 'x/y': ['1', '2'] },
  };
  const config = readPlainKubeconfig(kubeconfig({ server: SERVER }, user), '/kubeconfig');
  if (config === undefined) return t.fail('It is not plain');
  t.deepEqual((await plainCredentials(config)).headers, {
    'Impersonate-User': 'other',
    'Impersonate-Uid': '7',
    'Impersonate-Group': ['a', 'b'],
    'Impersonate-Extra-x%2Fy': ['1', '2'],
  });
});

test('The token file of a user has precedence over a token, and a relative one is beside the kubeconfig', async (t) => {
  const text = kubeconfig({ server: SERVER }, { token: 'other', tokenFile: 'token' });
  const config = readPlainKubeconfig(text, join(t.context.directory, 'kubeconfig'));
  if (config === undefined) return t.fail('It is not plain');
  const { headers } = await plainCredentials(config);
  t.deepEqual(headers, { Authorization: 'Bearer from-a-file' });
});

/** As kubeadm writes it. */
const YAML = `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: Y2E=
    server: ${SERVER}
  name: kubernetes
contexts:
- context:
    cluster: kubernetes
    user: headgate
  name: headgate@kubernetes
current-context: headgate@kubernetes
kind: Config
preferences: {}
users:
- name: headgate
  user:
    token: secret
`;

test('A kubeconfig is read the same in YAML, in JSON and in YAML that is not plain', (t) => {
  const config = readPlainKubeconfig(YAML, '/kubeconfig');
  t.like(config, { server: SERVER, token: { content: Buffer.from('secret') } });
  t.deepEqual(readPlainKubeconfig(JSON.stringify(parseYaml(YAML)), '/kubeconfig'), config);
  t.deepEqual(readPlainKubeconfig(YAML.replace('token: secret', 'token: &t secret'), '/kubeconfig'), config);
});

test("A pod's service account gives the same as by the library, also over IPv6", async (t) => {
  const root = t.context.directory;
  const account = join(root, 'var/run/secrets/kubernetes.io/serviceaccount');
  await mkdir(account, { recursive: true });
  await writeFile(join(account, 'token'), 'of-the-pod\n');
  await writeFile(join(account, 'ca.crt'), 'of the cluster');
  for (const [host, port] of [
    ['10.96.0.1', '443'],
    ['fd00::1', '6443'],
  ] as const) {
    const library = new KubeConfig();
    const { KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT } = process.env;
    Object.assign(process.env, { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port });
    library.loadFromCluster(root);
    restore({ KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT });
    t.deepEqual(await plainCredentials(podConfig(host, port, account)), await byLibrary(library));
  }
});

function restore(variables: Readonly<Record<string, string | undefined>>): void {
  for (const [name, value] of Object.entries(variables)) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
}

const left = test.macro({
  exec(t, text: string) {
    t.is(readPlainKubeconfig(text, '/etc/headgate/kubeconfig'), undefined);
  },
  title: (what) => `Left to the library is ${what}`,
});

const cluster = { server: SERVER };
const user = { token: 'secret' };

test('a credential plugin', left, kubeconfig(cluster, { exec: { command: 'login' } }));
test('an auth provider of another kind', left, kubeconfig(cluster, { 'auth-provider': { name: 'other' } }));
test('groups without the user who has them', left, kubeconfig(cluster, { ...user, 'as-groups': ['a'] }));
test('a SOCKS proxy', left, kubeconfig({ ...cluster, 'proxy-url': 'socks5://192.0.2.7:1080' }, user));
test('a token that is a number', left, kubeconfig(cluster, { token: 1 }));
test('a name without a password', left, kubeconfig(cluster, { username: 'one' }));
test('a switch that is a text', left, kubeconfig({ ...cluster, 'insecure-skip-tls-verify': 'true' }, user));
test('a cluster without a server', left, kubeconfig({ server: '' }, user));
test('a server without TLS', left, kubeconfig({ server: 'http://192.0.2.1:8080' }, user));
test('a user that is null', left, kubeconfig(cluster, null));
test('a context that is not there', left, kubeconfig(cluster, user, { 'current-context': 'nowhere' }));
test(
  'a name that two have',
  left,
  kubeconfig(cluster, user, { clusters: [0, 1].map(() => ({ name: 'c', cluster })) }),
);
test('two documents', left, `${kubeconfig(cluster, user)}\n---\n${kubeconfig(cluster, user)}`);
test('what is no YAML', left, 'users: [{token: secret');
test('what is no mapping', left, 'secret');
