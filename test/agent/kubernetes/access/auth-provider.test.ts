// Auth providers of a kubeconfig: an identity provider of the test's own, over TLS, and commands that print tokens.

import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import {
  type AuthProvider,
  AuthProviderTokens,
  readAuthProvider,
} from '../../../../agent/kubernetes/access/auth-provider.ts';
import { requires } from '../../../support/basics/requirements.ts';
import { startIdentityProvider } from '../../../support/kube/identity-provider.ts';
import { httpProxy } from '../../../support/traffic/proxies.ts';

const test = requires(ava, { programs: ['openssl'] });

async function folder(t: ExecutionContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'headgate-provider-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** Tokens of an identity provider, by a clock that the test sets, and the kubeconfig's words for it. */
async function oidc(t: ExecutionContext, more: Record<string, string> = {}) {
  const directory = await folder(t);
  const idp = await startIdentityProvider(directory);
  t.teardown(idp.close);
  const clock = { now: Date.now() };
  const config = {
    'idp-issuer-url': idp.issuer,
    'idp-certificate-authority': 'issuer.crt',
    'client-id': 'headgate',
    'id-token': idp.token(-60),
    'refresh-token': idp.refreshToken(),
    ...more,
  };
  const provider: AuthProvider = { name: 'oidc', config, directory };
  const tokens = new AuthProviderTokens({ timeoutMs: 10_000, env: {}, now: () => clock.now });
  return { directory, idp, clock, config, provider, tokens };
}

test('An identity token that is good is used, and nobody is asked', async (t) => {
  const { idp, provider, tokens } = await oidc(t);
  const good = { ...provider, config: { ...provider.config, 'id-token': idp.token(3600) } };
  t.is(await tokens.token(good, false), good.config['id-token']);
  t.deepEqual(idp.grants, []);
});

// Conformance: credentials
test('A token that is over is renewed, again before the next is over, each time with the last refresh token', async (t) => {
  const { idp, clock, provider, tokens } = await oidc(t);
  const first = await tokens.token(provider, false);
  t.not(first, provider.config['id-token']);
  t.is(await tokens.token(provider, false), first);
  clock.now += 3_500_000;
  t.is(await tokens.token(provider, false), first);
  clock.now += 50_000;
  const second = await tokens.token(provider, false);
  t.not(second, first);
  t.deepEqual(
    idp.grants.map(({ status }) => status),
    [200, 200],
  );
  t.is(new Set(idp.grants.map(({ form }) => form.get('refresh_token'))).size, 2);
  t.is(idp.grants[0]?.form.get('client_id'), 'headgate');
  t.is(idp.grants[0]?.authorization, undefined);
});

// Conformance: credentials
test('A token that is refused is renewed, but not twice in half a minute', async (t) => {
  const { idp, clock, provider, tokens } = await oidc(t);
  const first = await tokens.token(provider, false);
  t.is(await tokens.token(provider, true), first);
  clock.now += 30_000;
  t.not(await tokens.token(provider, true), first);
  t.is(idp.grants.length, 2);
});

test('A refresh token may stay the same', async (t) => {
  const { idp, clock, provider, tokens } = await oidc(t);
  idp.ways.keepsRefreshTokens = true;
  const first = await tokens.token(provider, false);
  clock.now += 3_600_000;
  t.not(await tokens.token(provider, false), first);
  t.is(new Set(idp.grants.map(({ form }) => form.get('refresh_token'))).size, 1);
});

test('What is new in the kubeconfig counts before what has been renewed', async (t) => {
  const { idp, provider, tokens } = await oidc(t);
  await tokens.token(provider, false);
  const other = { ...provider, config: { ...provider.config, 'id-token': idp.token(3600) } };
  t.is(await tokens.token(other, true), other.config['id-token']);
  t.is(idp.grants.length, 1);
});

test('A client with a secret says it in the header, or in the form where that is asked for', async (t) => {
  const { idp, clock, provider, tokens } = await oidc(t, { 'client-secret': 'a b:c' });
  await tokens.token(provider, false);
  idp.ways.methods = ['client_secret_post'];
  clock.now += 3_600_000;
  await tokens.token(provider, false);
  const [header, form] = idp.grants;
  t.is(header?.authorization, `Basic ${Buffer.from('headgate:a+b%3Ac').toString('base64')}`);
  t.is(header?.form.get('client_secret'), null);
  t.is(form?.authorization, undefined);
  t.deepEqual([form?.form.get('client_id'), form?.form.get('client_secret')], ['headgate', 'a b:c']);
});

test('While a token is good a provider that is away does not matter; then it is said, without a secret', async (t) => {
  const { idp, clock, provider, tokens } = await oidc(t);
  const first = await tokens.token(provider, false);
  idp.close();
  clock.now += 3_550_000;
  t.is(await tokens.token(provider, false), first);
  clock.now += 60_000;
  const error = await t.throwsAsync(tokens.token(provider, false));
  t.is(error?.message, 'the auth provider "oidc": its identity provider cannot be asked: ECONNREFUSED');
});

test('A refusal is told by its name, and with no other word of the provider', async (t) => {
  const { provider, tokens } = await oidc(t, { 'refresh-token': 'secret-1' });
  const error = await t.throwsAsync(tokens.token(provider, false));
  t.is(
    error?.message,
    'the auth provider "oidc": its identity provider gives no identity token (400): invalid_grant',
  );
});

test('A provider that cannot be trusted is not asked', async (t) => {
  const { provider, tokens, idp } = await oidc(t, { 'idp-certificate-authority': '' });
  const error = await t.throwsAsync(tokens.token(provider, false));
  t.regex(error?.message ?? '', /cannot be asked: (DEPTH_ZERO_)?SELF_SIGNED_CERT/);
  const plain = { ...provider, config: { ...provider.config, 'idp-issuer-url': 'http://127.0.0.1:1' } };
  t.regex((await t.throwsAsync(tokens.token(plain, false)))?.message ?? '', /no "https:\/\/" URL/);
  t.deepEqual(idp.grants, []);
});

test('An identity provider is asked through the proxy of the environment', async (t) => {
  const { idp, provider } = await oidc(t);
  const proxy = await httpProxy();
  t.teardown(proxy.close);
  const { port } = new URL(idp.issuer);
  const env = { HTTPS_PROXY: `http://127.0.0.1:${proxy.port}` };
  const tokens = new AuthProviderTokens({ timeoutMs: 10_000, env });
  // The name is not that of the certificate: it is the way that counts here.
  const named = {
    ...provider,
    config: { ...provider.config, 'idp-issuer-url': `https://idp.example.org:${port}` },
  };
  await t.throwsAsync(tokens.token(named, false), { message: /ERR_TLS_CERT_ALTNAME_INVALID/ });
  t.deepEqual(proxy.targets, [`idp.example.org:${port}`]);
});

for (const field of ['idp-issuer-url', 'client-id', 'refresh-token'])
  test(`Without "${field}" a token that is over stays so, and it is said why`, async (t) => {
    const { provider, tokens } = await oidc(t, { [field]: '' });
    const error = await t.throwsAsync(tokens.token(provider, false));
    t.regex(error?.message ?? '', new RegExp(`there is no "${field}"`));
  });

for (const [name, expiry] of [
  ['gcp', '{"token_expiry": "EXPIRY", "access_token": "TOKEN"}'],
  ['azure', '{"expiresOn": "EXPIRY", "accessToken": "TOKEN"}'],
] as const)
  test(`The command of ${name} is asked when the token is over, without a shell`, async (t) => {
    const directory = await folder(t);
    const [program, calls] = [join(directory, 'print token'), join(directory, 'calls')];
    const clock = { now: Date.UTC(2026, 10, 22) };
    const print = async (token: string, end: string, status = 0) => {
      const text = expiry.replace('TOKEN', token).replace('EXPIRY', end);
      await writeFile(program, `#!/bin/sh\necho "$@" >>'${calls}'\necho '${text}'\nexit ${status}\n`);
      await chmod(program, 0o700);
    };
    const keys = name === 'gcp' ? {} : { 'token-key': '{.accessToken}', 'expiry-key': '{.expiresOn}' };
    const config = { 'access-token': 'first', 'cmd-path': program, 'cmd-args': 'get  $(id)', ...keys };
    const provider: AuthProvider = {
      name,
      config: { ...config, expiry: '2026-11-22T00:10:00Z' },
      directory,
    };
    const tokens = new AuthProviderTokens({ timeoutMs: 10_000, now: () => clock.now });
    t.is(await tokens.token(provider, false), 'first');
    clock.now += 600_000;
    await print('second', '2026-11-22T01:00:00Z');
    t.is(await tokens.token(provider, false), 'second');
    t.is(await tokens.token(provider, false), 'second');
    t.is(await readFile(calls, 'utf8'), 'get $(id)\n');
    await print('secret', '', 3);
    clock.now += 3_600_000;
    const error = await t.throwsAsync(tokens.token(provider, false));
    t.is(
      error?.message,
      `the auth provider "${name}": the command ${JSON.stringify(program)} failed with status 3`,
    );
  });

test('A command that hangs is ended, and one that prints no token says so', async (t) => {
  const directory = await folder(t);
  const program = join(directory, 'command');
  const write = (body: string) => writeFile(program, `#!/bin/sh\n${body}\n`, { mode: 0o700 });
  const provider: AuthProvider = { name: 'gcp', config: { 'cmd-path': program }, directory };
  const tokens = new AuthProviderTokens({ timeoutMs: 500 });
  await write('exec sleep 1000');
  await t.throwsAsync(tokens.token(provider, false), { message: /did not end within 500 ms/ });
  const patient = new AuthProviderTokens({ timeoutMs: 20_000 });
  for (const text of ['secret', '{"access_token": 1}', '[]']) {
    await write(`echo '${text}'`);
    await t.throwsAsync(patient.token(provider, false), { message: /printed no token$/ });
  }
  const gone = { ...provider, config: { 'cmd-path': join(directory, 'nowhere') } };
  await t.throwsAsync(patient.token(gone, false), { message: /cannot be started$/ });
});

test('A token that says no end is good for ever, and without a command there is no other', async (t) => {
  const tokens = new AuthProviderTokens({ timeoutMs: 500 });
  const provider = (config: Record<string, string>): AuthProvider => ({
    name: 'azure',
    config,
    directory: '/',
  });
  t.is(await tokens.token(provider({ 'access-token': 'kept' }), false), 'kept');
  const over = provider({ 'access-token': 'old', 'expires-on': '1' });
  await t.throwsAsync(tokens.token(over, false), {
    message: /no command is named .* use a credential plugin/,
  });
});

test('readAuthProvider() takes what it knows, whole', (t) => {
  const config = { 'id-token': 'a' };
  t.deepEqual(readAuthProvider({ name: 'oidc', config }, '/d'), { name: 'oidc', config, directory: '/d' });
  t.deepEqual(readAuthProvider({ name: 'gcp' }, '/d')?.config, {});
  for (const other of [
    undefined,
    'oidc',
    { name: 'exec', config },
    { name: 'oidc', config: { 'id-token': 1 } },
  ])
    t.is(readAuthProvider(other, '/d'), undefined);
});
