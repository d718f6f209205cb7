// Kubeconfigs and a pod's account, compared with what the client library makes of the same files.

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { RequestOptions } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { KubeConfig } from '@kubernetes/client-node';
import ava, { type TestFn } from 'ava';
import { parseYamlDocuments } from '../../../../agent/base/yaml.ts';
import {
  type Credentials,
  type CredentialsLocation,
  CredentialsSource,
} from '../../../../agent/kubernetes/access/credentials.ts';
import { readKubeconfig } from '../../../../agent/kubernetes/access/kubeconfig.ts';

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
    tls: Object.fromEntries(Object.entries(tls).filter(([, value]) => value !== undefined)),
    proxy: undefined,
  };
}

const credentialsOf = (place: CredentialsLocation) => new CredentialsSource(place).current();

const asTheLibrary = test.macro({
  async exec(t, cluster: object, user: object) {
    const path = join(t.context.directory, 'kubeconfig');
    const text = kubeconfig({ server: SERVER, ...cluster }, user);
    await writeFile(path, text);
    const library = new KubeConfig();
    library.loadFromFile(path);
    t.deepEqual(await credentialsOf({ kind: 'Kubeconfig', path }), await byLibrary(library));
  },
  title: (what) => `Credentials are the same as the client library's for ${what}`,
});

const base64 = (text: string): string => Buffer.from(text).toString('base64');

test('a token', asTheLibrary, {}, { token: 'secret' });
test('a user without credentials', asTheLibrary, {}, {});
test('a server with a slash behind it', asTheLibrary, { server: `${SERVER}/` }, { token: 'secret' });
test('a server that is not checked', asTheLibrary, { 'insecure-skip-tls-verify': true }, { token: 'secret' });
test('a server of another name', asTheLibrary, { 'tls-server-name': 'api.example.org' }, { token: 'secret' });
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
test('empty texts', asTheLibrary, { 'certificate-authority': '' }, { token: '', tokenFile: '' });
test('extensions', asTheLibrary, { extensions: [{ name: 'x', extension: {} }] }, { token: 'secret' });

test('a user who acts as another', asTheLibrary, {}, { token: 'secret', as: 'other' });

test('The client sends the groups and extras of impersonation as client-go does', async (t) => {
  const user = {
    as: 'other',
    'as-uid': '7',
    'as-groups': ['a', 'b'],
    'as-user-extra': { 'x/y': ['1', '2'] },
  };
  const path = join(t.context.directory, 'kubeconfig');
  await writeFile(path, kubeconfig({ server: SERVER }, user));
  t.deepEqual((await credentialsOf({ kind: 'Kubeconfig', path })).headers, {
    'Impersonate-User': 'other',
    'Impersonate-Uid': '7',
    'Impersonate-Group': ['a', 'b'],
    'Impersonate-Extra-x%2Fy': ['1', '2'],
  });
});

test('The token file of a user has precedence over a token, and a relative one is beside the kubeconfig', async (t) => {
  const path = join(t.context.directory, 'kubeconfig');
  await writeFile(path, kubeconfig({ server: SERVER }, { token: 'other', tokenFile: 'token' }));
  t.deepEqual((await credentialsOf({ kind: 'Kubeconfig', path })).headers, {
    Authorization: 'Bearer from-a-file',
  });
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

test('A kubeconfig is read the same in YAML and in JSON', (t) => {
  const config = readKubeconfig(YAML, '/kubeconfig');
  t.like(config, { server: SERVER, token: { content: Buffer.from('secret') } });
  t.deepEqual(
    readKubeconfig(JSON.stringify(parseYamlDocuments(YAML).documents[0]?.value), '/kubeconfig'),
    config,
  );
});

test("Credentials are what the client library makes of a pod's service account, also over IPv6", async (t) => {
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
    const own = await credentialsOf({ kind: 'InCluster', root });
    restore({ KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT });
    t.deepEqual(own, await byLibrary(library));
  }
});

function restore(variables: Readonly<Record<string, string | undefined>>): void {
  for (const [name, value] of Object.entries(variables)) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
}

// Conformance: credentials
test('readKubeconfig() refuses credentials that it does not support, with the user and the supported ones', (t) => {
  const users = {
    'auth-provider': { 'auth-provider': { name: 'gcp', config: { 'access-token': 'secret' } } },
    username: { username: 'one', password: 'secret' },
  };
  for (const [field, user] of Object.entries(users))
    t.throws(() => readKubeconfig(kubeconfig({ server: SERVER }, user), '/kubeconfig'), {
      message: `user "u": "${field}" is not supported, use a token, a certificate or "exec"`,
    });
});

const refused = test.macro({
  exec(t, text: string, why: RegExp) {
    const error = t.throws(() => readKubeconfig(text, '/etc/headgate/kubeconfig'));
    t.regex(error?.message ?? '', why);
    t.notRegex(error?.message ?? '', /secret/);
  },
  title: (what) => `readKubeconfig() refuses ${what}`,
});

const cluster = { server: SERVER };
const user = { token: 'secret' };
const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: 'login' };

test(
  'groups without the user who has them',
  refused,
  kubeconfig(cluster, { ...user, 'as-groups': ['a'] }),
  /"as" is/,
);
test(
  'groups that are no list',
  refused,
  kubeconfig(cluster, { ...user, as: 'a', 'as-groups': 'secret' }),
  /^user "u": as-groups is not a list$/,
);
test(
  'more of a user that is no list',
  refused,
  kubeconfig(cluster, { ...user, as: 'a', 'as-user-extra': { x: 'secret' } }),
  /^user "u": as-user-extra.x is not a list of texts$/,
);
test(
  'a token that is a number',
  refused,
  kubeconfig(cluster, { token: 1 }),
  /^user "u": token is not a text$/,
);
test(
  'a switch that is a text',
  refused,
  kubeconfig({ ...cluster, 'insecure-skip-tls-verify': 'true' }, user),
  /^cluster "c": insecure-skip-tls-verify is not true or false$/,
);
test(
  'a cluster without a server',
  refused,
  kubeconfig({ server: '' }, user),
  /^cluster "c" names no API server$/,
);
test(
  'a server without TLS',
  refused,
  kubeconfig({ server: 'http://192.0.2.1:8080' }, user),
  /^its server has no TLS/,
);
test('a user that is null', refused, kubeconfig(cluster, null), /^user "u" is not a mapping$/);
test(
  'a context that is not there',
  refused,
  kubeconfig(cluster, user, { 'current-context': 'nowhere' }),
  /^it has no context "nowhere"$/,
);
test(
  'no context',
  refused,
  kubeconfig(cluster, user, { 'current-context': '' }),
  /^its current context names no context$/,
);
test(
  'a name that two have',
  refused,
  kubeconfig(cluster, user, { clusters: [0, 1].map(() => ({ name: 'c', cluster })) }),
  /^it has cluster "c" 2 times$/,
);
test(
  'two documents',
  refused,
  `${kubeconfig(cluster, user)}\n---\n${kubeconfig(cluster, user)}`,
  /^it is not one/,
);
test('what is no YAML', refused, 'users:\n[{token: secret', /^it is not YAML: line \d, column \d+$/);
test('what is no mapping', refused, 'secret', /^it is not one YAML mapping$/);
test(
  'a plugin of an API that is gone',
  refused,
  kubeconfig(cluster, { exec: { ...exec, apiVersion: 'client.authentication.k8s.io/v1alpha1' } }),
  /^user "u": exec.apiVersion is not one of client.authentication.k8s.io\/v1, client.authentication.k8s.io\/v1beta1$/,
);
test(
  'a plugin that asks a person',
  refused,
  kubeconfig(cluster, { exec: { ...exec, interactiveMode: 'Always' } }),
  /^user "u": exec.interactiveMode is not one of Never, IfAvailable$/,
);

test('readKubeconfig() gives a credential plugin with its path beside the kubeconfig, to a user who has nothing else', (t) => {
  const read = (more: object) => readKubeconfig(kubeconfig(cluster, more), '/etc/headgate/kubeconfig').plugin;
  t.deepEqual(
    read({ exec: { ...exec, command: './login', env: [{ name: 'A', value: 'b' }], args: ['c'] } }),
    {
      apiVersion: exec.apiVersion,
      command: '/etc/headgate/login',
      args: ['c'],
      env: { A: 'b' },
      wantsCluster: false,
    },
  );
  t.is(read({ exec, interactiveMode: 'Never' })?.command, 'login');
  t.is(read({ exec, token: 'secret' }), undefined);
  t.is(read({ exec, 'client-certificate': 'a.crt', 'client-key': 'a.key' }), undefined);
});
