// The two authorities of Octavia, and certificates of an amphora and of its controller, as files.

import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface AmphoraCertificates {
  /** Paths: certificates of the authorities; certificate and key of one host in one file. */
  readonly serverAuthority: string;
  readonly clientAuthority: string;
  readonly server: string;
  readonly client: string;
  /** A client of another authority. */
  readonly stranger: string;
  /** Another certificate and key of the amphora, as text. */
  readonly renewed: string;
}

/** `amphora`: the id that the controller expects as host name. */
export async function amphoraCertificates(folder: string, amphora: string): Promise<AmphoraCertificates> {
  const serverAuthority = await authority(folder, 'server-ca');
  const clientAuthority = await authority(folder, 'client-ca');
  const other = await authority(folder, 'other-ca');
  const renewed = await issued(folder, 'renewed', serverAuthority, amphora);
  return {
    serverAuthority,
    clientAuthority,
    server: await issued(folder, 'server', serverAuthority, amphora),
    client: await issued(folder, 'client', clientAuthority, 'controller'),
    stranger: await issued(folder, 'stranger', other, 'controller'),
    renewed: await readFile(renewed, 'utf8'),
  };
}

const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '30'];

/** `NAME.pem` and, beside it, `NAME.pem.key`. */
async function authority(folder: string, name: string): Promise<string> {
  const path = join(folder, `${name}.pem`);
  await run('openssl', [
    'req',
    '-x509',
    ...KEY,
    '-subj',
    `/CN=${name}`,
    '-keyout',
    `${path}.key`,
    '-out',
    path,
  ]);
  return path;
}

async function issued(folder: string, name: string, by: string, host: string): Promise<string> {
  const path = join(folder, `${name}.pem`);
  const [key, cert] = [`${path}.key`, `${path}.crt`];
  const names = ['-subj', `/CN=${host}`, '-addext', `subjectAltName=DNS:${host}`];
  const from = ['-CA', by, '-CAkey', `${by}.key`];
  await run('openssl', [
    'req',
    '-x509',
    ...KEY,
    ...names,
    ...from,
    '-addext',
    'basicConstraints=CA:FALSE',
    '-keyout',
    key,
    '-out',
    cert,
  ]);
  await writeFile(path, `${await readFile(cert, 'utf8')}${await readFile(key, 'utf8')}`);
  return path;
}
