// What `plan` says of tokens: by folders of manifests, whose URLs no command reads.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { checkJwks } from '../../../../agent/certificates/token-keys/token-keys.ts';
import { planAnswer, planLines } from '../../../../agent/cli/plan/answer.ts';
import { foldersCompared } from '../../../../agent/cli/plan/compared-states.ts';
import { tokenKeyTexts } from '../../../../agent/haproxy/config/token-key-files.ts';
import { readSettings } from '../../../../agent/settings/settings.ts';
import { gatewayClassJson, gatewayJson, routeJson } from '../../../support/values/gateways.ts';
import { webObjects } from '../../../support/values/service-objects.ts';
import { jwksOf, type Signer, signer } from '../../../support/values/tokens.ts';

const URL = 'https://id.example.org/keys';
const KEY = signer('a', 'ES256');
const JWT = {
  issuer: 'https://id.example.org',
  audiences: 'shop',
  keys: 'configmap/keys',
  headers: { 'X-User': 'sub' },
};

function objects(jwt: object | undefined, by: Signer = KEY): string {
  const spec = { addresses: [{ type: 'IPAddress', value: '192.0.2.10' }] };
  const listeners = [{ name: 'http', port: 80, protocol: 'HTTP' }];
  const route = routeJson('shop', [{ name: 'edge' }], { hostnames: ['shop.example.org'] });
  const annotations = jwt === undefined ? {} : { 'headgate.io/jwt': JSON.stringify(jwt) };
  const metadata = { ...(route.metadata as object), annotations };
  const keys = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'default', name: 'keys' },
    data: { 'jwks.json': jwksOf(by) },
  };
  const gateway = gatewayJson('edge', { ...spec, listeners });
  const [, slice] = webObjects({ address: '', members: ['10.1.1.1'], portName: 'http' });
  const web = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: 'default', name: 'web' },
    spec: { ports: [{ name: 'http', port: 80 }] },
  };
  const all = [gatewayClassJson(), gateway, { ...route, metadata }, keys, web, slice];
  return all.map((each) => JSON.stringify(each)).join('\n---\n');
}

function folderOf(t: ExecutionContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-plan-tokens-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The lines of what opens and closes. */
async function planned(folder: string, before: string, after: string): Promise<string> {
  const argv = ['--state-dir', join(folder, 'state')];
  const settings = readSettings({ argv, env: {}, readFile: (path) => readFileSync(path, 'utf8') });
  for (const [name, text] of Object.entries({ before, after }))
    writeFileSync(join(folder, `${name}.yaml`), text);
  const states = await foldersCompared([join(folder, 'before.yaml')], [join(folder, 'after.yaml')], settings);
  const answer = await planAnswer(states, settings, undefined);
  return JSON.stringify(planLines(answer));
}

for (const [what, changes] of [
  ['issuer', { issuer: 'https://other.example.org' }],
  ['audience', { audiences: '*' }],
  ['header', { headers: { 'X-User': 'email' } }],
  ['token that members do not get', { forward: false }],
] as const)
  test(`Another ${what} is a difference`, async (t) => {
    const text = await planned(folderOf(t), objects(JWT), objects({ ...JWT, ...changes }));
    t.regex(text, /Open only to clients with a token/);
    t.is(text, text.replace('0 open, 0 close', ''));
  });

test('Another key under the same name is a difference', async (t) => {
  const text = await planned(folderOf(t), objects(JWT), objects(JWT, signer('a', 'ES256')));
  const [, before, after] = /\(ES256, (\w{12})\).*\(ES256, (\w{12})\)/.exec(text) ?? [];
  t.truthy(before && after && before !== after, text);
});

test('Keys of a URL are not known, so that a change of what a token must have is a difference', async (t) => {
  const ofUrl = { ...JWT, keys: URL };
  const folder = folderOf(t);
  const other = await planned(folder, objects(ofUrl), objects({ ...ofUrl, audiences: 'other' }));
  t.regex(other, /Open only to clients with a token .* by keys, which are not read here, of jwks https:/);
  t.regex(await planned(folder, objects(ofUrl), objects(undefined)), /1 opens?, 0 close/);
  t.regex(await planned(folder, objects(undefined), objects(ofUrl)), /0 open, 1 closes?/);
  t.regex(await planned(folder, objects(ofUrl), objects(ofUrl)), /0 open, 0 close/);
});

test('On a host with an agent a command has the keys that the agent has read', async (t) => {
  const folder = folderOf(t);
  const keys = checkJwks(jwksOf(KEY));
  if (typeof keys === 'string') throw new Error(keys);
  const { fingerprint } = keys;
  const place = join(folder, 'state', 'haproxy', 'keys');
  mkdirSync(place, { recursive: true });
  for (const { path, text } of tokenKeyTexts([{ name: `jwks ${URL}`, fingerprint, keys: keys.keys }], place))
    writeFileSync(path, text() ?? '');
  const ofUrl = { ...JWT, keys: URL };
  t.regex(
    await planned(folder, objects(ofUrl), objects({ ...ofUrl, audiences: 'other' })),
    /by key \\?\\?"a/,
  );
});
