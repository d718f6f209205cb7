// Public keys behind URLs: the real agent reads them from a server in TLS, follows a rotation, and keeps the last ones through an outage
// and its own restart.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import ava, { type ExecutionContext } from 'ava';
import { runCommand } from '../../agent/host/run-command.ts';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { request, startEcho } from '../support/traffic/echo.ts';
import { keys, startKeyServer, wrongAnswers } from '../support/traffic/key-server.ts';
import { Authority } from '../support/traffic/tls.ts';
import { gatewayClassJson, gatewayJson, routeJson } from '../support/values/gateways.ts';
import { VIP_PORT, webObjects } from '../support/values/service-objects.ts';
import { goodClaims, ISSUER, jwksOf, type Signer, signer, tokenOf } from '../support/values/tokens.ts';

const test = requires(ava, { haproxy: true });

const OLD = signer('old', 'RS256');
const NEW = signer('new', 'ES256');
const KEYS_PORT = 9443;
/** A URL is due after 30 s, and looked at each 30 s. */
const RENEWED_MS = 100_000;

/** Two hosts whose operator has named an authority of his own, for keys at the address 21 of the first. */
async function hostsWith(t: ExecutionContext<unknown>) {
  const authority = await Authority.create(t);
  const folder = await mkdtemp(join(tmpdir(), 'hg-jwks-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'authority.pem');
  await writeFile(file, authority.cert);
  const create = () => TestHost.create(t, { env: { NODE_EXTRA_CA_CERTS: file } });
  return { host: await create(), other: await create(), file, authority };
}

/** A route for each URL, at the host of its name. */
async function writeRoutes(
  t: ExecutionContext<unknown>,
  host: TestHost,
  urls: Readonly<Record<string, string>>,
): Promise<void> {
  const port = Number((await startEcho(t, 'web')).split(':')[1]);
  const [, slice = {}] = webObjects({ address: '', members: ['127.0.0.1'], portName: 'http' });
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: 'default', name: 'web' },
    spec: { type: 'ClusterIP', clusterIP: '10.96.0.1', ports: [{ name: 'http', port: 80, protocol: 'TCP' }] },
  };
  const spec = {
    addresses: [{ type: 'IPAddress', value: host.address(1) }],
    listeners: [{ name: 'http', port: VIP_PORT, protocol: 'HTTP' }],
  };
  const routes = Object.entries(urls).map(([name, url]) => {
    const jwt = `{issuer: "${ISSUER}", audiences: shop, keys: "${url}"}`;
    const route = routeJson(name, [{ name: 'edge' }], { hostnames: [`${name}.example.org`] });
    const metadata = { ...(route.metadata as object), annotations: { 'headgate.io/jwt': jwt } };
    return { ...route, metadata };
  });
  const objects = [gatewayClassJson(), gatewayJson('edge', spec), service, ...routes];
  await host.write('objects.yaml', [
    ...objects,
    { ...slice, ports: [{ name: 'http', port, protocol: 'TCP' }] },
  ]);
}

async function statusOf(host: TestHost, name: string, by: Signer): Promise<number> {
  const headers = {
    host: `${name}.example.org`,
    authorization: `Bearer ${tokenOf(by, goodClaims(Date.now()))}`,
  };
  return (await request(host.place(), '/', { headers })).status;
}

async function allAnswer(
  host: TestHost,
  names: readonly string[],
  by: Signer,
  status: number,
): Promise<boolean> {
  for (const name of names) {
    const found = await statusOf(host, name, by);
    if (found !== status) throw new Error(`${name} answers ${found}`);
  }
  return true;
}

const problemsOf = async (host: TestHost): Promise<readonly string[]> =>
  (await host.status()).problems.map(({ object, reason, message }) => `${object} ${reason}: ${message}`);

test('Each host follows a rotation of keys, and a token that is good all the time is never refused', async (t) => {
  const { host, other, authority } = await hostsWith(t);
  const place = { address: host.address(21), port: KEYS_PORT };
  const server = await startKeyServer(t, place, await authority.issue({ names: [place.address] }));
  const base = `https://${place.address}:${place.port}/realm`;
  server.answers.set('/realm/keys', keys(jwksOf(OLD)));
  const hosts = [host, other];
  for (const each of hosts)
    await writeRoutes(t, each, {
      shop: `${base}/keys`,
      other: `https://${place.address}:${place.port}/keys`,
    });
  const agent = await host.start(['--jwks-urls', base]);
  await other.start(['--jwks-urls', base]);
  const onAll = async (by: Signer, status: number): Promise<boolean> => {
    for (const each of hosts) await allAnswer(each, ['shop'], by, status);
    return true;
  };
  await host.until('the keys are read', () => onAll(OLD, 200));
  t.is(await statusOf(host, 'shop', NEW), 401);
  t.is(await statusOf(host, 'other', OLD), 403);
  t.regex((await problemsOf(host)).join('\n'), /other InvalidKeys: .*the setting jwksUrls does not allow/);

  const refused: number[] = [];
  let isOver = false;
  const client = async (by: Signer) => {
    for (let at = 0; !isOver; at++) {
      const status = await statusOf(at % 2 === 0 ? host : other, 'shop', by).catch(() => 0);
      if (status !== 200) refused.push(status);
      await delay(20);
    }
  };
  const old = client(OLD);
  server.answers.set('/realm/keys', keys(jwksOf(OLD, NEW)));
  await host.until('the new key counts', () => onAll(NEW, 200), RENEWED_MS);
  isOver = true;
  await old;
  isOver = false;
  const now = client(NEW);
  server.answers.set('/realm/keys', keys(jwksOf(NEW)));
  await host.until('the old key counts no longer', () => onAll(OLD, 401), RENEWED_MS);
  isOver = true;
  await now;
  t.deepEqual(refused, []);
  t.is(server.asked.get('/keys'), undefined);

  // A command reads no URL; on a host with an agent it has the agent's keys.
  const objects = await readFile(join(host.manifestDir, 'objects.yaml'), 'utf8');
  const after = join(host.directory, 'after.yaml');
  await writeFile(after, objects.replaceAll(ISSUER, `${ISSUER}/new`));
  const { stdout } = await host.command('plan', [host.manifestDir, after]);
  t.regex(stdout, /example\.org\/new" .*by key "new" \(ES256, \w{12}\) of jwks/);
  t.regex(stdout, /by keys, which are not read here, of jwks https:\S+\/keys/);
  await agent.stop();
});

test('`check` says of each URL whether it answers, is trusted and has keys, and fails for none', async (t) => {
  const { host, file, authority } = await hostsWith(t);
  const place = { address: host.address(21), port: KEYS_PORT };
  const server = await startKeyServer(t, place, await authority.issue({ names: [place.address] }));
  const base = `https://${place.address}:${place.port}`;
  const wrong = wrongAnswers(jwksOf(NEW));
  const urls = Object.fromEntries([...Object.keys(wrong), 'good'].map((name) => [name, `${base}/${name}`]));
  for (const [name, [answer]] of Object.entries(wrong)) server.answers.set(`/${name}`, answer);
  server.answers.set('/good', keys(jwksOf(OLD, NEW)));
  await writeRoutes(t, host, urls);
  const away = `https://${host.address(22)}:${KEYS_PORT}`;
  const check = async (authorities: string) => {
    const places = [
      '--state-dir',
      host.stateDir,
      '--runtime-dir',
      host.runtimeDir,
      '--listen',
      '127.0.0.1:0',
    ];
    const named = ['--manifests', host.manifestDir, '--jwks-urls', `${base},${away}`];
    const env = { ...process.env, NODE_EXTRA_CA_CERTS: authorities };
    return runCommand(host.headgate, ['check', ...places, ...named], { timeout: 60_000, env });
  };
  const { exitCode, stdout } = await check(file);
  t.is(exitCode, 0, stdout);
  const lineOf = (url: string) => stdout.split('\n').find((line) => line.includes(`${url}: `)) ?? '';
  t.regex(lineOf(urls.good ?? ''), /^ok .*it answers, is trusted, and has "new" \(ES256\), "old" \(RS256\)$/);
  t.regex(lineOf(base), /^ok .*answers and is trusted; it has no keys itself \(it answers with status 404\)/);
  t.regex(lineOf(away), /^warn .*ECONNREFUSED.*; until it can, routes keep/);
  for (const [name, [, why]] of Object.entries(wrong)) {
    t.regex(lineOf(urls[name] ?? ''), /^warn /, name);
    t.regex(lineOf(urls[name] ?? '').replace('but has no key that can be used', 'it cannot be read'), why);
  }
  t.regex(
    (await check('')).stdout,
    /^warn \S+good: it cannot be read: .*: set NODE_EXTRA_CA_CERTS to a file/m,
  );
});

test('Each wrong answer of a server keeps the last keys, also through a restart, and is a problem', async (t) => {
  t.timeout(400_000);
  const { host, authority } = await hostsWith(t);
  const wrong = wrongAnswers(jwksOf(NEW));
  const places = [21, 22, 23].map((last) => ({ address: host.address(last), port: KEYS_PORT }));
  const [place, ofStranger, away] = places as [(typeof places)[0], (typeof places)[0], (typeof places)[0]];
  const certificate = await authority.issue({ names: places.map(({ address }) => address) });
  const server = await startKeyServer(t, place, certificate);
  const stranger = await startKeyServer(t, ofStranger, certificate);
  const gone = await startKeyServer(t, away, certificate);
  const urlAt = ({ address, port }: (typeof places)[0], name: string) => `https://${address}:${port}/${name}`;
  const plain = { plain: `${urlAt(place, 'plain')}` };
  const urls = Object.fromEntries(Object.keys(wrong).map((name) => [name, urlAt(place, name)]));
  const all = { ...urls, ...plain, stranger: urlAt(ofStranger, 'keys'), away: urlAt(away, 'keys') };
  const names = Object.keys(all);
  for (const each of [server, stranger, gone])
    for (const path of [...names.map((name) => `/${name}`), '/keys'])
      each.answers.set(path, keys(jwksOf(OLD), path === '/plain' ? { 'content-type': 'text/plain' } : {}));
  server.answers.set('/other', keys(jwksOf(NEW)));
  await writeRoutes(t, host, all);
  const flags = places.flatMap((each) => ['--jwks-urls', urlAt(each, '')]);
  const first = await host.start(flags);
  await host.until('all keys are read', () => allAnswer(host, names, OLD, 200));
  t.deepEqual(await problemsOf(host), []);

  for (const [name, [answer]] of Object.entries(wrong)) server.answers.set(`/${name}`, answer);
  const other = await Authority.create(t, 'Another authority');
  stranger.server.setSecureContext(await other.issue({ names: [ofStranger.address] }));
  stranger.server.closeAllConnections();
  gone.close();
  const expected = {
    ...Object.fromEntries(Object.entries(wrong).map(([name, [, why]]) => [name, why])),
    stranger: /unable to verify|unable to get local issuer|self-signed/,
    away: /ECONNREFUSED/,
  };
  const complain = async (): Promise<boolean> => {
    const problems = await problemsOf(host);
    for (const [name, why] of Object.entries(expected)) {
      const own = problems.filter((text) => text.includes(`default/${name} InvalidKeys`)).join();
      if (!why.test(own)) throw new Error(`${name}: ${own}`);
    }
    return problems.length === Object.keys(expected).length;
  };
  await host.until('each is a problem', complain, RENEWED_MS);
  t.true(await allAnswer(host, names, OLD, 200));
  t.true(await allAnswer(host, names, NEW, 401));
  t.regex((await problemsOf(host)).join('\n'), /the keys that it had stay/);
  t.is((await first.metrics())('headgate_problems', { reason: 'InvalidKeys' }), names.length - 1);
  t.regex(
    (await host.command('status')).stdout,
    /default\/huge: Cannot use URL .* the keys that it had stay/,
  );

  // Nothing lives through it but the state directory.
  const worker = await host.worker();
  await first.kill();
  await host.killHaproxy(worker);
  const second = await host.start(flags);
  await host.until('the keys of before count', () => allAnswer(host, names, OLD, 200));
  t.true(await allAnswer(host, names, NEW, 401));
  await host.until('each is a problem again', complain, RENEWED_MS);
  t.true(await allAnswer(host, names, OLD, 200));

  for (const name of Object.keys(wrong)) server.answers.set(`/${name}`, keys(jwksOf(NEW)));
  stranger.answers.set('/keys', keys(jwksOf(NEW)));
  stranger.server.setSecureContext(certificate);
  stranger.server.closeAllConnections();
  const back = names.filter((name) => !['plain', 'away'].includes(name));
  await host.until('the new keys count', () => allAnswer(host, back, NEW, 200), RENEWED_MS);
  t.true(await allAnswer(host, back, OLD, 401));
  t.is((await problemsOf(host)).length, 1);
  await second.stop();
});
