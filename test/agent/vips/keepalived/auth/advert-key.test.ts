import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { readAdvertKey } from '../../../../../agent/vips/keepalived/auth/advert-key.ts';

test('readAdvertKey() takes a private file of one key, and an error never shows it', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'hg-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const path = join(folder, 'key');
  const hex = 'AbCd'.repeat(16);
  await writeFile(path, `${hex}\n`, { mode: 0o600 });
  const { id, name, hex: read } = await readAdvertKey(path);
  t.is(read, hex.toLowerCase());
  t.true(id >= 1 && id <= 255);
  t.false(hex.toLowerCase().includes(name));
  await chmod(path, 0o644);
  await t.throwsAsync(readAdvertKey(path), { message: /can be read by others: set its mode to 0600/ });
  await chmod(path, 0o600);
  for (const bad of ['', 'ab'.repeat(31), 'ab'.repeat(65), 'zz'.repeat(32), `${hex} ${hex}`]) {
    await writeFile(path, bad);
    const error = await t.throwsAsync(readAdvertKey(path), { message: /one line of 64 to 128 hex digits/ });
    if (bad !== '') t.false(error?.message.includes(bad));
  }
  await t.throwsAsync(readAdvertKey(join(folder, 'missing')), { message: /cannot be read/ });
});
