import { inspect } from 'node:util';
import test from 'ava';
import fc from 'fast-check';
import { checkKeyPair } from '../../../agent/certificates/key-pair.ts';
import { API, AUTHORITY, SMALL, WEB } from '../../support/values/certificates.ts';

test('checkKeyPair() gives the chain and the key as PEM, with what HAProxy shows of them', (t) => {
  const pair = checkKeyPair(`# from a file\n${WEB.cert}${AUTHORITY}`, WEB.key);
  if (typeof pair === 'string') return t.fail(pair);
  t.is(pair.chainLength, 1);
  t.regex(pair.sha1, /^[0-9A-F]{40}$/);
  t.is(pair.pem.reveal(), `${WEB.cert}${AUTHORITY}${WEB.key}`);
  t.is(pair.bytes, pair.pem.reveal().length);
  t.true(pair.expires > Date.UTC(2100, 0, 1));
});

test('Equal certificates have equal fingerprints, whatever is around their blocks', (t) => {
  const [one, other, third] = [
    checkKeyPair(WEB.cert, WEB.key),
    checkKeyPair(`\r\nx\n${WEB.cert.replaceAll('\n', '\r\n')}\n\n`, `${API.cert}${WEB.key}`),
    checkKeyPair(API.cert, API.key),
  ].map((each) => (typeof each === 'string' ? each : each.fingerprint));
  t.is(one, other);
  t.not(one, third);
});

const refused: readonly (readonly [what: string, certificates: string, key: string, fault: string])[] = [
  ['nothing', '', '', 'tls.crt has no certificate in PEM'],
  ['no key', WEB.cert, WEB.cert, 'tls.key has no private key in PEM'],
  ['no certificate', WEB.key, WEB.key, 'tls.crt has no certificate in PEM'],
  [
    'the key of another certificate',
    WEB.cert,
    API.key,
    'tls.key is not the key of the first certificate of tls.crt, which must be that of the server',
  ],
  [
    'the chain in another order',
    `${AUTHORITY}${WEB.cert}`,
    WEB.key,
    'tls.key is not the key of the first certificate of tls.crt, which must be that of the server',
  ],
  [
    'a chain of strangers',
    `${WEB.cert}${API.cert}`,
    WEB.key,
    "certificate 2 of tls.crt did not issue certificate 1: the chain must be in order, from the server's to the last one",
  ],
  [
    'a short key',
    SMALL.cert,
    SMALL.key,
    'the key is rsa 1024: allowed are RSA of 2048 bits or more, ECDSA with P-256, P-384 or P-521, and Ed25519',
  ],
  [
    'a broken certificate',
    WEB.cert.replace('MII', 'AAA'),
    WEB.key,
    'certificate 1 of tls.crt cannot be read',
  ],
  ['a broken key', WEB.cert, WEB.key.replace(/M/g, 'N'), 'tls.key cannot be read'],
  [
    'an encrypted key',
    WEB.cert,
    WEB.key.replaceAll('PRIVATE KEY', 'ENCRYPTED PRIVATE KEY'),
    'tls.key is encrypted: HAProxy needs it without a passphrase',
  ],
  ['11 certificates', WEB.cert.repeat(11), WEB.key, 'tls.crt has 11 certificates: at most 10 are allowed'],
  ['64 kilobytes', 'x'.repeat(65_536), WEB.key, 'tls.crt and tls.key have more than 65536 bytes'],
];
for (const [what, certificates, key, fault] of refused)
  test(`checkKeyPair() refuses ${what}`, (t) => {
    t.is(checkKeyPair(certificates, key), fault);
  });

test('checkKeyPair() never throws, and no message has a part of what it got', (t) => {
  const part = fc.oneof(
    fc.constantFrom(WEB.cert, WEB.key, API.cert, API.key, SMALL.key, '-----BEGIN CERTIFICATE-----\n'),
    fc.string(),
  );
  const text = fc.array(part, { maxLength: 4 }).map((parts) => parts.join(''));
  fc.assert(
    fc.property(text, text, (certificates, key) => {
      const checked = checkKeyPair(certificates, key);
      if (typeof checked !== 'string') return;
      t.true(checked.length < 300);
      for (const line of `${certificates}\n${key}`.split('\n'))
        if (line.length > 20 && !line.startsWith('-----')) t.false(checked.includes(line));
    }),
  );
});

test('A pair shows its text nowhere but by reveal()', (t) => {
  const pair = checkKeyPair(WEB.cert, WEB.key);
  const [, secret = 'x'] = WEB.key.split('\n');
  for (const text of [
    JSON.stringify(pair),
    inspect(pair, { depth: 9, showHidden: true }),
    `${Object.values(pair)}`,
  ])
    t.false(text.includes(secret));
});
