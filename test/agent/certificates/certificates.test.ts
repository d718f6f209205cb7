// Which certificates of Secrets listeners get.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { Certificates } from '../../../agent/certificates/certificates.ts';
import { checkKeyPair } from '../../../agent/certificates/key-pair.ts';
import { certificateFile } from '../../../agent/haproxy/config/tls-config.ts';
import { BIG, type PemPair, WEB } from '../../support/values/certificates.ts';

/** Certificates of a cluster whose Secrets all have this pair; without one there is no Secret. */
function certificatesWith(given: PemPair | undefined, maxRsaBits: number): Certificates {
  const pair = given && checkKeyPair(given.cert, given.key);
  if (typeof pair === 'string') throw new Error(pair);
  const none = { content: undefined, fault: 'none' };
  const secret = {
    pair: { content: pair, fault: '' },
    authority: none,
    crl: none,
    tokenKeys: none,
    users: none,
  };
  return new Certificates({
    secret: () => (pair === undefined ? undefined : secret),
    configMap: () => undefined,
    maxRsaBits,
    accessToPair: () => ({ kind: 'read' }),
    accessToAuthority: () => ({ kind: 'read' }),
    isRead: () => true,
    onChanged: () => undefined,
  });
}

test('An RSA key that is longer than the setting allows is refused, and the fault names the length', (t) => {
  const allowed = [
    [BIG, 4608],
    [BIG, 16_384],
    [WEB, 2048],
  ] as const;
  for (const [pair, bits] of allowed) {
    const { content, fault } = certificatesWith(pair, bits).pair('default/shop');
    t.deepEqual([content === undefined, fault], [false, ''], String(bits));
  }
  const { content, fault } = certificatesWith(BIG, 4096).pair('default/shop');
  t.is(content, undefined);
  t.is(fault, 'the key is rsa 4608: at most 4096 bits are allowed (setting maxRsaBits)');
});

test('A key that is too long is not taken over from an earlier agent', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'hg-kept-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  for (const [key, { cert, key: text }] of [
    ['default/big', BIG],
    ['default/web', WEB],
  ] as const)
    writeFileSync(certificateFile(folder, key), `${cert}${text}`);
  const certificates = certificatesWith(undefined, 4096);
  certificates.restore(folder);
  t.deepEqual(
    certificates.expiries().map(({ name }) => name),
    ['default/web'],
  );
});
