import test from 'ava';
import {
  checkJwks,
  checkTokenFields,
  checkTokenKeys,
  type TokenKeys,
} from '../../../../agent/certificates/token-keys/token-keys.ts';
import { jwkOf, jwksOf, pemOf, signer } from '../../../support/values/tokens.ts';

const RSA = signer('rsa', 'RS256');
const ALL = [RSA, signer('p256', 'ES256'), signer('p384', 'ES384'), signer('p521', 'ES512')];

function good(checked: TokenKeys | string): TokenKeys {
  if (typeof checked === 'string') throw new Error(checked);
  return checked;
}

const namesOf = (checked: TokenKeys | string) =>
  good(checked).keys.map(({ kid, algorithm }) => `${kid} ${algorithm}`);

test('A JWKS gives each key with its one algorithm, and the keys are read again as they were written', (t) => {
  const keys = good(checkJwks(jwksOf(...ALL)));
  t.deepEqual(namesOf(keys), ['p256 ES256', 'p384 ES384', 'p521 ES512', 'rsa RS256']);
  t.deepEqual(keys.faults, []);
  t.is(good(checkTokenKeys(keys.keys)).fingerprint, keys.fingerprint);
  t.is(keys.keys.find(({ kid }) => kid === 'rsa')?.pem, pemOf(RSA));
});

test('An RSA key has the algorithm that it names, and RS256 without one', (t) => {
  const { alg: _, ...unnamed } = jwkOf(RSA);
  const keys = [
    { ...unnamed, kid: 'a' },
    { ...unnamed, kid: 'b', alg: 'RS512' },
  ];
  t.deepEqual(namesOf(checkJwks(JSON.stringify({ keys }))), ['a RS256', 'b RS512']);
});

test('Fields that end with .pem are keys by their names', (t) => {
  t.deepEqual(namesOf(checkTokenFields({ 'new.pem': pemOf(RSA), other: 'x' })), ['new RS256']);
});

test('Keys for encryption are not looked at', (t) => {
  const keys = [{ ...jwkOf(RSA), kid: 'enc', use: 'enc', alg: 'RSA-OAEP' }, jwkOf(RSA)];
  const checked = checkJwks(JSON.stringify({ keys }));
  t.deepEqual([namesOf(checked), good(checked).faults], [['rsa RS256'], []]);
});

const { alg: _, ...ANY_ALGORITHM } = jwkOf(RSA);
const SECRET = 'c2VjcmV0LW9mLXRoZS1pc3N1ZXI';
for (const [what, key, fault] of [
  ['a shared secret', { kty: 'oct', kid: 's', k: SECRET, alg: 'HS256' }, /has a secret part/],
  ['a private key', RSA.privateKey.export({ format: 'jwk' }), /has a secret part/],
  ['an RSA key for HMAC', { ...ANY_ALGORITHM, alg: 'HS256' }, /cannot be used: RS256/],
  ['an RSA key for nothing', { ...ANY_ALGORITHM, alg: 'none' }, /cannot be used: RS256/],
  ['an RSA key for PSS', { ...ANY_ALGORITHM, alg: 'PS256' }, /cannot be used: RS256/],
  ['a curve for another algorithm', { ...jwkOf(signer('x', 'ES256')), alg: 'ES384' }, /cannot be used/],
  ['Ed25519', { kty: 'OKP', crv: 'Ed25519', x: SECRET, kid: 'e' }, /cannot be used/],
  ['a short RSA key', jwkOf(signer('short', 'RS256', 1024)), /cannot be used: .* 2048 to 4096 bits/],
  ['a name with a line end', { ...jwkOf(RSA), kid: 'a\nb' }, /"kid" is not a text/],
  ['a point that is none', { kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA', kid: 'p' }, /cannot be (read|used)/],
  ['no key', 'x', /a key is not a mapping/],
] as const)
  test(`A JWKS with ${what} keeps its other keys, and the fault shows no secret`, (t) => {
    const { keys, faults } = good(checkJwks(JSON.stringify({ keys: [key, jwkOf(ALL[1] ?? RSA)] })));
    t.deepEqual(
      keys.map(({ kid }) => kid),
      ['p256'],
    );
    t.is(faults.length, 1);
    t.regex(faults[0] ?? '', fault);
    t.notRegex(faults.join(), new RegExp(SECRET));
  });

for (const [what, text, fault] of [
  ['no JSON', '{', /is not JSON/],
  ['no list', '{"keys":{}}', /has no list "keys"/],
  ['no key', '{"keys":[]}', /has no key for signatures/],
  ['too many bytes', ' '.repeat(300_000), /more than 262144 bytes/],
] as const)
  test(`A JWKS with ${what} is refused`, (t) => {
    t.regex(String(checkJwks(text)), fault);
  });

test('Of keys with one name the first counts, and more than 30 are refused', (t) => {
  t.deepEqual(good(checkJwks(jwksOf(RSA, { ...signer('x', 'ES256'), kid: 'rsa' }))).faults, [
    'key "rsa" is there twice',
  ]);
  const many = Array.from({ length: 31 }, (_none, at) => ({ ...RSA, kid: `k${at}` }));
  t.regex(String(checkJwks(jwksOf(...many))), /^it has 31 keys/);
  const none = JSON.stringify({ keys: Array.from({ length: 10_000 }, () => ({})) });
  t.regex(String(checkJwks(none)), /^it has 10000 keys/);
  t.regex(String(checkJwks(' '.repeat(1_000_000))), /^its JWKS has more than 262144 bytes$/);
});

test('A field with a private key is refused, without its text', (t) => {
  const pem = RSA.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  t.is(
    String(checkTokenFields({ 'a.pem': pem })),
    'field "a.pem" has a private key, which belongs nowhere else',
  );
});
