// Credentials of a pair, made by the commands of docs/high-availability.md.

import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Writes `name`.pem into `folder` and gives its path. */
export async function makeCredentials(folder: string, name = 'pair'): Promise<string> {
  const path = join(folder, `${name}.pem`);
  const certificate = join(folder, `${name}.crt`);
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const subject = ['-days', '3650', '-subj', '/CN=headgate-pair'];
  await run('openssl', ['req', '-x509', ...curve, ...subject, '-keyout', path, '-out', certificate]);
  await writeFile(path, (await readFile(path, 'utf8')) + (await readFile(certificate, 'utf8')), {
    mode: 0o600,
  });
  return path;
}
