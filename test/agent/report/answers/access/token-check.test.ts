// What `why` says of a token: by the rules of templates/haproxy/jwt.lua, without a part of the token in any answer.

import test from 'ava';
import { checkJwks } from '../../../../../agent/certificates/token-keys/token-keys.ts';
import type { RouteJwt } from '../../../../../agent/model/routes.ts';
import type { CheckResult, Way } from '../../../../../agent/report/answers/access/check.ts';
import { token } from '../../../../../agent/report/answers/access/token-check.ts';
import {
  goodClaims,
  ISSUER,
  jwksOf,
  part,
  pemOf,
  signer,
  tokenOf,
} from '../../../../support/values/tokens.ts';

const NOW = Date.UTC(2026, 10, 29);
const SECONDS = NOW / 1000;
const RSA = signer('rsa', 'RS256');
const EC = signer('ec', 'ES256');
const CLAIMS = goodClaims(NOW);
const JWT: RouteJwt = {
  keys: 'configmap default/keys',
  issuer: ISSUER,
  audiences: ['shop'],
  from: { kind: 'bearer', name: 'authorization' },
  leeway: 30,
  required: [],
  headers: [],
};

function checked(headers: Readonly<Record<string, string>> | undefined, changes: Partial<RouteJwt> = {}) {
  const keys = checkJwks(jwksOf(RSA, EC));
  if (typeof keys === 'string') throw new Error(keys);
  const { fingerprint } = keys;
  const way = {
    listener: { tokenKeys: [{ name: JWT.keys, fingerprint, keys: keys.keys }] },
    client: { ...(headers && { headers: new Map(Object.entries(headers)) }), now: NOW },
    request: { rule: { jwt: { ...JWT, ...changes } } },
  };
  return token(way as unknown as Way) as CheckResult;
}

const bearer = (text: string) => ({ authorization: `Bearer ${text}` });

test('Without a token it is asked, and without keys it is closed', (t) => {
  t.deepEqual(checked(undefined), {
    result: 'asked',
    detail:
      'with a token of "https://id.example.org" for "shop", by one of 2 keys (ES256, RS256) of configmap default/keys',
    answer: 'status 401',
  });
  t.is(checked({ authorization: 'Basic eDp5' }).result, 'asked');
  t.deepEqual(checked(bearer(tokenOf(EC, CLAIMS)), { keys: '' }), {
    result: 'refused',
    detail: 'no keys of tokens can be used',
    answer: 'status 403',
  });
});

for (const [what, given, changes] of [
  ['RS256', tokenOf(RSA, CLAIMS)],
  ['ES256', tokenOf(EC, CLAIMS)],
  ['several audiences', tokenOf(EC, { ...CLAIMS, aud: ['other', 'shop'] })],
  ['no audience, if none is wanted', tokenOf(EC, { ...CLAIMS, aud: undefined }), { audiences: [] }],
  ['an end within the leeway', tokenOf(EC, { ...CLAIMS, exp: SECONDS - 29 })],
  ['a begin within the leeway', tokenOf(EC, { ...CLAIMS, nbf: SECONDS + 30 })],
  [
    'a claim that is wanted',
    tokenOf(EC, { ...CLAIMS, groups: ['x', 'ops'], realm: { roles: [1] }, scope: 'a b' }),
    {
      required: [
        { claim: 'groups', values: ['admin', 'ops'] },
        { claim: '/realm/roles', values: ['1'] },
        { claim: 'scope', values: ['b'] },
        { claim: 'sub', values: [] },
      ],
    },
  ],
] as const)
  test(`A token with ${what} lets in`, (t) => {
    t.is(checked(bearer(given), changes).result, 'passed');
  });

test('A token is found in the cookie or header that the route names', (t) => {
  const given = tokenOf(EC, CLAIMS);
  t.is(
    checked({ cookie: `a=b; session=${given}` }, { from: { kind: 'cookie', name: 'session' } }).result,
    'passed',
  );
  t.is(checked({ 'x-token': given }, { from: { kind: 'header', name: 'x-token' } }).result, 'passed');
  t.is(checked(bearer(given), { from: { kind: 'header', name: 'x-token' } }).result, 'asked');
});

const [head = '', body = '', signature = ''] = tokenOf(RSA, CLAIMS).split('.');
const forged = { ...signer('rsa', 'RS256'), kid: 'rsa' };
for (const [what, given, why, changes] of [
  ['no signature', `${part({ alg: 'none', kid: 'rsa' })}.${body}.`, /is not a signed token/],
  ['the algorithm none', `${part({ alg: 'none', kid: 'rsa' })}.${body}.${signature}`, /another algorithm/],
  ['HMAC by the public key', tokenOf(RSA, CLAIMS, { alg: 'HS256' }), /another algorithm than RS256/],
  ['another algorithm', tokenOf({ ...RSA, algorithm: 'RS512' }, CLAIMS), /another algorithm than RS256/],
  ['an unknown key', tokenOf({ ...RSA, kid: 'x' }, CLAIMS), /names a key that is not among them/],
  ['a name of its key that is no text', tokenOf(RSA, CLAIMS, { kid: 7 }), /names a key that is not/],
  ['the key of another', tokenOf(forged, CLAIMS), /has a wrong signature/],
  ['other claims', `${head}.${part({ ...CLAIMS, sub: 'root' })}.${signature}`, /has a wrong signature/],
  ['a critical field', tokenOf(RSA, CLAIMS, { crit: ['b64'], b64: false }), /has critical fields/],
  ['a fourth part', `${head}.${body}.${signature}.x`, /is not a signed token/],
  ['a header that is not JSON', `${part('{')}.${body}.${signature}`, /header that is not JSON/],
  ['claims that are a list', tokenOf(RSA, '[]'), /claims that are not JSON/],
  ['no end', tokenOf(EC, { ...CLAIMS, exp: undefined }), /when it ends/],
  ['an end that is a text', tokenOf(EC, { ...CLAIMS, exp: '9999999999' }), /when it ends/],
  ['a past end', tokenOf(EC, { ...CLAIMS, exp: SECONDS - 30 }), /has ended/],
  ['a later begin', tokenOf(EC, { ...CLAIMS, nbf: SECONDS + 31 }), /has not begun/],
  ['a begin that is a text', tokenOf(EC, { ...CLAIMS, nbf: '0' }), /has not begun/],
  ['another issuer', tokenOf(EC, { ...CLAIMS, iss: `${ISSUER}/` }), /another issuer/],
  ['several issuers', tokenOf(EC, { ...CLAIMS, iss: [ISSUER] }), /another issuer/],
  ['another audience', tokenOf(EC, { ...CLAIMS, aud: 'Shop' }), /another audience/],
  [
    'no such claim',
    tokenOf(EC, { ...CLAIMS, groups: ['user'] }),
    /lacks what the route wants of claim "groups"/,
    { required: [{ claim: 'groups', values: ['admin'] }] },
  ],
  [
    'a claim that ends a header',
    tokenOf(EC, { ...CLAIMS, name: 'a\r\nX-Admin: 1' }),
    /has a claim "name" that a header cannot have/,
    { headers: [{ name: 'X-Name', claim: 'name' }] },
  ],
  [
    'a claim that looks like two',
    tokenOf(EC, { ...CLAIMS, groups: ['user,admin'] }),
    /has a claim "groups" that a header cannot have/,
    { headers: [{ name: 'X-Groups', claim: 'groups' }] },
  ],
] as const)
  test(`A token with ${what} is refused with 401, and no answer shows it`, (t) => {
    const { result, detail, answer } = checked(bearer(given), changes);
    t.deepEqual([result, answer], ['refused', 'status 401']);
    t.regex(detail, why);
    for (const each of given.split('.').filter(Boolean)) t.false(detail.includes(each));
    t.false(detail.includes(pemOf(RSA)));
  });
