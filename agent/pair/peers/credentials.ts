// The credentials of a pair: one PEM file with a private key, this host's certificate, and other trusted certificates.
// Reads and checks the file; its content is never logged.
// Why: docs/design/decisions/0008-pair-credentials.md

import { createHash, createPrivateKey, X509Certificate } from 'node:crypto';
import { open } from 'node:fs/promises';
import { HeadgateError, messageOf } from '../../base/errors.ts';
import { pemBlocks } from '../../base/pem.ts';

export interface PairCredentials {
  /** The private key and its certificate, PEM. */
  readonly identity: string;
  /** All certificates of the file, PEM: the peer shows one of them, or one that they have signed. */
  readonly trusted: string;
  /** The end of this host's certificate, milliseconds since the epoch. */
  readonly expires: number;
  /** Differs for other certificates; reveals nothing about the key. */
  readonly fingerprint: string;
}

/** The group may read it, because HAProxy may run as another user; others must have no rights. */
const FORBIDDEN_MODE = 0o037;
const MAX_FILE_BYTES = 256 * 1024;

/** For connections in both directions. */
export function tlsOptions({ identity, trusted }: PairCredentials) {
  return { key: identity, cert: identity, ca: trusted, minVersion: 'TLSv1.3' } as const;
}

/** Errors: PAIR_CREDENTIALS, retry later, with the path and the reason. */
export async function readCredentials(path: string, now = Date.now()): Promise<PairCredentials> {
  try {
    return credentialsIn(await readPrivate(path), now);
  } catch (cause) {
    const message = `Cannot use the credentials of the pair in "${path}"`;
    throw new HeadgateError('PAIR_CREDENTIALS', message, { cause: new Error(messageOf(cause)) });
  }
}

async function readPrivate(path: string): Promise<string> {
  const file = await open(path, 'r');
  try {
    const { mode, size } = await file.stat();
    const rights = (mode & 0o777).toString(8).padStart(4, '0');
    if ((mode & FORBIDDEN_MODE) !== 0)
      throw new Error(`Its mode is ${rights}: others could use the key in it, make it 0600`);
    if (size > MAX_FILE_BYTES) throw new Error(`It is ${size} bytes long: ${MAX_FILE_BYTES} are allowed`);
    return await file.readFile('utf8');
  } finally {
    await file.close();
  }
}

function credentialsIn(text: string, now: number): PairCredentials {
  const blocks = pemBlocks(text);
  const keys = blocks.filter(({ label }) => /^(?:[A-Z]+ )?PRIVATE KEY$/.test(label));
  const certificates = blocks
    .filter(({ label }) => label === 'CERTIFICATE')
    .map(({ text: pem }) => ({ pem, parsed: parsed(pem) }));
  const [own] = certificates;
  const [key] = keys;
  if (key === undefined || keys.length > 1)
    throw new Error(`It has ${keys.length} private keys: one is needed`);
  if (own === undefined) throw new Error('It has no certificate');
  if (!own.parsed.checkPrivateKey(privateKey(key.text)))
    throw new Error('Its first certificate does not belong to its private key');
  const expires = Date.parse(own.parsed.validTo);
  if (expires <= now) throw new Error(`Its first certificate ended on ${own.parsed.validTo}`);
  const trusted = certificates.map(({ pem }) => pem).join('');
  const identity = key.text + own.pem;
  const fingerprint = createHash('sha256').update(trusted).digest('hex').slice(0, 32);
  return { identity, trusted, expires, fingerprint };
}

function parsed(pem: string): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch {
    throw new Error('One of its certificates cannot be read');
  }
}

/** The error of OpenSSL could quote from the file. */
function privateKey(pem: string): ReturnType<typeof createPrivateKey> {
  try {
    return createPrivateKey(pem);
  } catch {
    throw new Error('Its private key cannot be read: it must have no passphrase');
  }
}
