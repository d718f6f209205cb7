import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { SecretText } from '../../../../agent/base/secret-text.ts';
import { passwordOf } from '../../../../agent/vips/bird/passwords.ts';

const NO_SECRETS = () => ({ why: 'there is none' });
const BAD = ['a"; }', '', 'two\nlines', 'x'.repeat(81), 'a";\n} protocol direct { }'];

test('passwordOf() reads one line, and refuses a file that every user can read or a text that BIRD cannot have', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'hg-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const path = join(directory, 'password');
  const read = () => passwordOf({ passwordFile: path }, NO_SECRETS);
  const why = async () => {
    const found = await read();
    return found !== undefined && 'why' in found ? found.why : '';
  };
  t.is(await passwordOf({ passwordFile: '' }, NO_SECRETS), undefined);
  t.regex(await why(), /cannot be read/);
  t.regex(
    await passwordOf({ passwordFile: directory }, NO_SECRETS).then((found) => JSON.stringify(found)),
    /cannot be read|can be read by every user/,
  );
  await writeFile(path, 'secret word\n', { mode: 0o600 });
  t.deepEqual(await read(), { text: 'secret word' });
  for (const bad of BAD) {
    await writeFile(path, bad);
    t.regex(await why(), /must have one line of 1 to 80 printable ASCII characters/);
    if (bad.length > 3) t.false((await why()).includes(bad), 'the password is not in the message');
  }
  await rm(path);
  await writeFile(path, 'secret', { mode: 0o604 });
  t.regex(await why(), /can be read by every user: set its mode to 0640 or less$/);
});

test('passwordOf() takes the password of a BGPPeer from its Secret, and never from a file', async (t) => {
  const peer = { passwordFile: '', object: { secret: { name: 'tor', key: 'password' } } };
  t.deepEqual(await passwordOf(peer, () => ({ text: new SecretText('secret word\n') })), {
    text: 'secret word',
  });
  t.deepEqual(await passwordOf(peer, NO_SECRETS), {
    why: 'the key "password" of the Secret "tor": there is none',
  });
  for (const bad of BAD) {
    const found = await passwordOf(peer, () => ({ text: new SecretText(bad) }));
    t.regex(JSON.stringify(found), /must have one line of 1 to 80 printable ASCII characters/);
    t.false(bad.length > 3 && JSON.stringify(found).includes(bad));
  }
  t.is(await passwordOf({ passwordFile: '', object: { secret: undefined } }, NO_SECRETS), undefined);
});
