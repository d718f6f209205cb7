import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { messageOf } from '../../../../agent/base/errors.ts';
import { readCredentials } from '../../../../agent/pair/peers/credentials.ts';
import { requires } from '../../../support/basics/requirements.ts';
import { makeCredentials } from '../../../support/vrrp/pair-credentials.ts';

const test = requires(ava, { programs: ['openssl'] });

async function folderOf(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-pair-'));
  t.teardown(() => rm(folder, { recursive: true }));
  return folder;
}

/** The error's whole text, which must not quote from the file. */
async function refusal(t: ExecutionContext, path: string, now?: number): Promise<string> {
  const error = await t.throwsAsync(readCredentials(path, now), { code: 'PAIR_CREDENTIALS' });
  const text = messageOf(error);
  t.notRegex(text, /BEGIN|[A-Za-z0-9+/]{60}/);
  return text;
}

test('A file of a key and its certificate can be used, and others can be trusted beside it', async (t) => {
  const folder = await folderOf(t);
  const path = await makeCredentials(folder);
  const alone = await readCredentials(path);
  t.regex(
    alone.identity,
    /^-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----\n-----BEGIN CERTIFICATE-----/,
  );
  t.notRegex(alone.trusted, /PRIVATE/);
  t.true(alone.expires > Date.now() + 3_000 * 86_400_000);

  await makeCredentials(folder, 'next');
  const both = (await readFile(path, 'utf8')) + (await readFile(join(folder, 'next.crt'), 'utf8'));
  await writeFile(path, both);
  const joined = await readCredentials(path);
  t.is(joined.identity, alone.identity);
  t.is(joined.trusted.match(/BEGIN CERTIFICATE/g)?.length, 2);
  t.not(joined.fingerprint, alone.fingerprint);
});

test('A file that others may read is refused, with the mode that it should have', async (t) => {
  const path = await makeCredentials(await folderOf(t));
  for (const mode of [0o644, 0o604, 0o660]) {
    await chmod(path, mode);
    t.regex(await refusal(t, path), /Its mode is 0\d{3}: others could use the key in it, make it 0600/);
  }
  await chmod(path, 0o640);
  await t.notThrowsAsync(readCredentials(path));
});

test('Each other fault is reported without any text of the file', async (t) => {
  const folder = await folderOf(t);
  const path = await makeCredentials(folder);
  await makeCredentials(folder, 'other');
  const key = (await readFile(path, 'utf8')).split('-----BEGIN CERTIFICATE-----')[0] ?? '';
  const certificate = await readFile(join(folder, 'pair.crt'), 'utf8');
  const otherCertificate = await readFile(join(folder, 'other.crt'), 'utf8');
  const broken = (text: string): string => text.replace(/\n[A-Za-z0-9+/=]+\n/, '\nAAAA\n');
  const files: readonly (readonly [string, RegExp])[] = [
    ['', /0 private keys/],
    [certificate, /0 private keys/],
    [key + key + certificate, /2 private keys/],
    [key, /no certificate/],
    [key + otherCertificate, /does not belong/],
    [broken(key) + certificate, /private key cannot be read/],
    [key + broken(certificate), /certificates cannot be read/],
  ];
  for (const [content, why] of files) {
    await writeFile(path, content);
    t.regex(await refusal(t, path), why);
  }
  await rm(path);
  t.regex(await refusal(t, path), /ENOENT/);
});

test('A certificate that has ended is refused', async (t) => {
  const path = await makeCredentials(await folderOf(t));
  t.regex(await refusal(t, path, Date.now() + 3_651 * 86_400_000), /ended on/);
});
