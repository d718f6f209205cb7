// What `why` says of a token, without a part of the token in any answer; test/real/jwt.test.ts asks HAProxy the same.

import test from 'ava';
import { checkJwks } from '../../../../../agent/certificates/token-keys/token-keys.ts';
import type { RouteJwt } from '../../../../../agent/model/routes.ts';
import type { CheckResult, Way } from '../../../../../agent/report/answers/access/check.ts';
import { token } from '../../../../../agent/report/answers/access/token-check.ts';
import { EC, JWT, RSA, tokenCases } from '../../../../support/values/token-cases.ts';
import { goodClaims, jwksOf, pemOf, type Signer, tokenOf } from '../../../../support/values/tokens.ts';

const NOW = Date.UTC(2026, 10, 29);

function checked(
  headers: Readonly<Record<string, string | readonly string[]>> | undefined,
  changes: Partial<RouteJwt> = {},
): CheckResult {
  const keys = checkJwks(jwksOf(RSA, EC));
  if (typeof keys === 'string') throw new Error(keys);
  const { fingerprint } = keys;
  const way = {
    listener: { tokenKeys: [{ name: JWT.keys, fingerprint, keys: keys.keys }] },
    client: {
      ...(headers && {
        headers: new Map(Object.entries(headers).map(([name, value]) => [name, [value].flat()])),
      }),
      now: NOW,
    },
    request: { rule: { jwt: { ...JWT, ...changes } } },
  };
  return token(way as unknown as Way) as CheckResult;
}

/** As `why` shows it. */
function hashOf(by: Signer): string {
  const keys = checkJwks(jwksOf(by));
  return typeof keys === 'string' ? keys : (keys.keys[0]?.id.slice(1, 13) ?? '');
}

const bearer = (text: string) => ({ authorization: `Bearer ${text}` });

test('Without a token it is asked, and without keys it is closed', (t) => {
  t.deepEqual(checked(undefined), {
    result: 'asked',
    detail: `with a token of "https://id.example.org" for "shop", by key "ec" (ES256, ${hashOf(EC)}) or "rsa" (RS256, ${hashOf(RSA)}) of configmap default/keys`,
    answer: 'status 401',
  });
  t.is(checked({ authorization: 'Basic eDp5' }).result, 'asked');
  const required = [
    { claim: 'groups', values: ['admin', 'ops'] },
    { claim: 'sub', values: [] },
  ];
  t.regex(
    checked(undefined, { required, leeway: 5, from: { kind: 'cookie', name: 'session' } }).detail,
    /for "shop" with claim "groups" "admin" or "ops" and "sub" in cookie "session" within 5 s, by key "ec"/,
  );
  t.regex(
    checked(undefined, { headers: [{ name: 'X-User', claim: 'sub' }], isRemoved: true }).detail,
    /for "shop" giving X-User claim "sub" which members do not get, by key "ec"/,
  );
  t.deepEqual(checked(bearer(tokenOf(EC, goodClaims(NOW))), { keys: '' }), {
    result: 'refused',
    detail: 'no keys of tokens can be used',
    answer: 'status 403',
  });
});

test('A token is found in the cookie or header that the route names', (t) => {
  const given = tokenOf(EC, goodClaims(NOW));
  const cookie = { kind: 'cookie', name: 'session' } as const;
  const header = { kind: 'header', name: 'x-token' } as const;
  t.is(checked({ cookie: `a=b; session=${given}` }, { from: cookie }).result, 'passed');
  t.is(checked({ 'x-token': given }, { from: header }).result, 'passed');
  t.is(checked(bearer(given), { from: header }).result, 'asked');
});

for (const { what, token: given, fault, changes } of tokenCases(NOW))
  test(`A token with ${what} ${fault === '' ? 'lets in' : 'is refused with 401'}, and no answer shows it`, (t) => {
    const { result, detail, answer } = checked(bearer(given), changes);
    t.deepEqual([result, answer], fault === '' ? ['passed', ''] : ['refused', 'status 401'], detail);
    t.true(detail.startsWith(fault === '' ? 'with a token of ' : `the token ${fault}`), detail);
    for (const each of given.split('.').filter((text) => text.length > 8)) t.false(detail.includes(each));
    t.false(detail.includes(pemOf(RSA)));
  });
