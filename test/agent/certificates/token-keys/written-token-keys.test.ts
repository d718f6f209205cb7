// The keys of an earlier agent, from the files that HAProxy has.

import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { checkJwks } from '../../../../agent/certificates/token-keys/token-keys.ts';
import { writtenTokenKeys } from '../../../../agent/certificates/token-keys/written-token-keys.ts';
import { tokenKeyTexts } from '../../../../agent/haproxy/config/token-key-files.ts';
import { jwksOf, signer } from '../../../support/values/tokens.ts';

const NAME = 'jwks https://id.example.org/keys';

test('Keys are taken over as they were written, and changed files are not', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'hg-keys-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const keys = checkJwks(jwksOf(signer('a', 'ES256'), signer('b', 'RS256')));
  if (typeof keys === 'string') return t.fail(keys);
  for (const { path, text } of tokenKeyTexts([{ name: NAME, ...keys }], folder))
    writeFileSync(path, text() ?? '');
  t.deepEqual(writtenTokenKeys(folder).get(NAME)?.keys, keys.keys);
  const [set = ''] = readdirSync(folder).filter((file) => file.endsWith('.json'));
  const other = checkJwks(jwksOf(signer('a', 'ES256')));
  writeFileSync(
    join(folder, set),
    JSON.stringify({ name: NAME, keys: typeof other === 'string' ? [] : other.keys }),
  );
  t.is(writtenTokenKeys(folder).size, 0);
  writeFileSync(join(folder, set), '{');
  t.is(writtenTokenKeys(folder).size, 0);
  t.is(writtenTokenKeys(join(folder, 'none')).size, 0);
});
