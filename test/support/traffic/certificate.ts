// A self-signed certificate for loopback addresses.

import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** Returns PEM and writes it into `directory` as `NAME.crt` and `NAME.key`. */
export async function certificate(directory: string, name: string): Promise<Certificate> {
  const [cert, key] = ['crt', 'key'].map((end) => join(directory, `${name}.${end}`)) as [string, string];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '3650'];
  const names = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=IP:127.0.0.1'];
  await run('openssl', ['req', '-x509', ...curve, ...names, '-keyout', key, '-out', cert]);
  return { cert: await readFile(cert, 'utf8'), key: await readFile(key, 'utf8') };
}
