import { X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { Arguments } from '../../../agent/cli/command.ts';
import { readArguments } from '../../../agent/cli/command-line.ts';
import { clientFields } from '../../../agent/cli/given-client.ts';
import { why } from '../../../agent/cli/why.ts';
import { clientOf } from '../../../agent/report/answers/access/client.ts';

import { AUTHORITY } from '../../support/values/certificates.ts';

function folderOf(t: ExecutionContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'hg-why-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  return folder;
}

const given = (...words: readonly string[]): Arguments =>
  readArguments(why, ['https://example.org/', ...words]);

test('Headers of several flags and of a file are one question', (t) => {
  const file = join(folderOf(t), 'headers');
  writeFileSync(file, 'Authorization: Bearer a.b.c\r\nX-A: 2\n\n');
  const fields = clientFields(given('--header', 'X-A: 1', '--header', `@${file}`, '--method', 'POST'));
  const { headers, method } = clientOf(new URLSearchParams(fields));
  t.deepEqual(
    [...(headers ?? [])],
    [
      ['x-a', ['1', '2']],
      ['authorization', ['Bearer a.b.c']],
    ],
  );
  t.is(method, 'POST');
});

test('Of a file with a key only the certificates are sent', (t) => {
  const file = join(folderOf(t), 'client.pem');
  writeFileSync(file, `${AUTHORITY}-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n`);
  const { error } = console;
  const told: string[] = [];
  console.error = (text: string) => told.push(text);
  t.teardown(() => {
    console.error = error;
  });
  const fields = clientFields(given('--cert', file));
  t.deepEqual(Object.keys(fields), ['cert']);
  t.is(
    Buffer.from(fields.cert ?? '', 'base64url').toString('hex'),
    new X509Certificate(AUTHORITY).raw.toString('hex'),
  );
  t.deepEqual(told, [
    `The private key in "${file.slice(0, 60)}${file.length > 60 ? '…' : ''}" is not needed: it was neither sent nor shown`,
  ]);
});

for (const [what, words, message] of [
  ['a second line', ['--header', 'a: b\nc: secret'], 'Cannot use --header: it has more than one line'],
  ['no such file', ['--cert', '/nowhere/x.pem'], /^Cannot use --cert: cannot read "\/nowhere\/x.pem": /],
  ['no certificate', ['--cert', '/dev/null'], 'Cannot use --cert: /dev/null has no certificate in PEM'],
] as const)
  test(`${what} is refused, without a value of a header`, (t) => {
    t.throws(() => clientFields(given(...words)), { message });
  });

for (const [what, fields, message] of [
  ['CONNECT', { method: 'CONNECT' }, 'Cannot use --method CONNECT: HAProxy answers it with 405 everywhere'],
  [
    'a method that is none',
    { method: 'g\u001b[31m' },
    'Cannot use --method "g\\u001b[31m": a method is a word in upper case, such as POST',
  ],
  [
    'too many headers',
    { header: `a: ${'x'.repeat(16_000)}` },
    'Cannot use --header: HAProxy takes at most 15360 bytes of headers',
  ],
  [
    'rubbish as a certificate',
    { cert: 'c2VjcmV0' },
    'Cannot use --cert: it has a certificate that cannot be read',
  ],
] as const)
  test(`The agent refuses ${what}`, (t) => {
    t.throws(() => clientOf(new URLSearchParams(fields)), { message });
  });
