import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { readPasswords } from '../../../../agent/vips/bird/passwords.ts';

test('readPasswords() reads one line, and refuses a file that every user can read or a text that BIRD cannot have', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'hg-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const path = join(directory, 'password');
  const read = () =>
    readPasswords([
      { name: 'tor-a', passwordFile: path },
      { name: 'tor-b', passwordFile: '' },
    ]);
  await t.throwsAsync(read, { message: /of the peer tor-a cannot be read/ });
  await writeFile(path, 'secret word\n', { mode: 0o600 });
  t.deepEqual([...(await read())], [['tor-a', 'secret word']]);
  for (const bad of ['a"; }', '', 'two\nlines', 'x'.repeat(81)]) {
    await writeFile(path, bad);
    const error = await t.throwsAsync(read, {
      message: /must have one line of 1 to 80 printable ASCII characters/,
    });
    if (bad.length > 3) t.false(String(error).includes(bad), 'the password is not in the message');
  }
  await rm(path);
  await writeFile(path, 'secret', { mode: 0o604 });
  await t.throwsAsync(read, { message: /can be read by every user: set its mode to 0640 or less$/ });
});
