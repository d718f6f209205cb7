import test from 'ava';
import { readJwt } from '../../../../agent/translate/routes/jwt-annotation.ts';

const LEAST = 'issuer: https://id.example.org\naudiences: shop\nkeys: configmap/keys\n';

test('readJwt() reads the least that a route says', (t) => {
  t.deepEqual(readJwt(LEAST), {
    source: 'configmap keys',
    jwt: {
      issuer: 'https://id.example.org',
      audiences: ['shop'],
      from: { kind: 'bearer', name: 'authorization' },
      leeway: 30,
      required: [],
      headers: [],
    },
  });
});

test('readJwt() reads all that a route can say', (t) => {
  const text = `
issuer: https://id.example.org
audiences: [shop, "https://shop.example.org"]
keys: https://id.example.org/keys?a=b
from: cookie:session
leeway: 0
claims: {groups: [admin, ops], email_verified: true, scope: read, sub: }
headers: {X-User: sub, X-Roles: /realm_access/roles}
`;
  t.deepEqual(readJwt(text), {
    source: 'jwks https://id.example.org/keys?a=b',
    jwt: {
      issuer: 'https://id.example.org',
      audiences: ['shop', 'https://shop.example.org'],
      from: { kind: 'cookie', name: 'session' },
      leeway: 0,
      required: [
        { claim: 'groups', values: ['admin', 'ops'] },
        { claim: 'email_verified', values: ['true'] },
        { claim: 'scope', values: ['read'] },
        { claim: 'sub', values: [] },
      ],
      headers: [
        { name: 'X-User', claim: 'sub' },
        { name: 'X-Roles', claim: '/realm_access/roles' },
      ],
    },
  });
});

for (const [from, kind, name] of [
  ['authorization', 'bearer', 'authorization'],
  ['header:Authorization', 'bearer', 'authorization'],
  ['header:X-Token', 'header', 'x-token'],
] as const)
  test(`readJwt() finds the token in ${from}`, (t) => {
    const read = readJwt(`${LEAST}from: ${from}\n`);
    t.deepEqual('jwt' in read && read.jwt.from, { kind, name });
  });

for (const [what, text, fault] of [
  ['no mapping', 'yes', /^it is not a mapping/],
  ['too much', `${LEAST}# ${'x'.repeat(3000)}`, /^it has more than 3000 bytes/],
  ['no YAML', '{', /^it is not a mapping/],
  ['two documents', `${LEAST}---\n${LEAST}`, /^it is not a mapping/],
  ['a field that is not known', `${LEAST}algorithm: none\n`, /^it has a field "algorithm"; issuer, /],
  ['no issuer', LEAST.replace(/issuer.*\n/, ''), /^"issuer" must/],
  ['an issuer with a line end', LEAST.replace('https://id.example.org', '"a\\nb"'), /^"issuer" must/],
  ['no audience', LEAST.replace('shop', '[]'), /^"audiences" must/],
  ['an audience that is no text', LEAST.replace('shop', '{a: b}'), /^"audiences" must/],
  ['keys of another namespace', LEAST.replace('configmap/keys', 'configmap/other/keys'), /^"keys" must/],
  ['a file for keys', LEAST.replace('configmap/keys', 'file:///etc/passwd'), /^"keys" must/],
  ['a URL in clear text', LEAST.replace('configmap/keys', 'http://id.example.org/'), /^"keys" must/],
  ['a URL with a password', LEAST.replace('configmap/keys', 'https://a:b@id.example.org/'), /^"keys" must/],
  ['a place that is none', `${LEAST}from: query:token\n`, /^"from" must/],
  ['a header with a blank', `${LEAST}from: "header:X Token"\n`, /^"from" must/],
  ['a leeway of an hour', `${LEAST}leeway: 3600\n`, /^"leeway" must/],
  ['a leeway below 0', `${LEAST}leeway: -1\n`, /^"leeway" must/],
  ['no values of a claim', `${LEAST}claims: {groups: []}\n`, /^"claims" must/],
  ['values that are no texts', `${LEAST}claims: {groups: [{}]}\n`, /^"claims" must/],
  ['a wrong pointer', `${LEAST}claims: {/a~2: b}\n`, /^"claims" must/],
  ['a header that HAProxy needs', `${LEAST}headers: {Host: sub}\n`, /^"headers" names "Host", which/],
  [
    'the header with the token',
    `${LEAST}headers: {authorization: sub}\n`,
    /^"headers" names "authorization"/,
  ],
  ['a forwarded header', `${LEAST}headers: {X-Forwarded-For: sub}\n`, /^"headers" names "X-Forwarded-For"/],
  ['a header with _', `${LEAST}headers: {X_User: sub}\n`, /^"headers" must/],
  ['a header twice', `${LEAST}headers: {X-User: sub, x-user: iss}\n`, /^"headers" names "x-user" twice/],
] as const)
  test(`readJwt() refuses ${what}`, (t) => {
    const read = readJwt(text);
    t.regex('fault' in read ? read.fault : 'none', fault);
  });
