// By what the two hosts of a pair know each other: one PEM file with a private key, this host's certificate, and the
// certificates that are trusted beside it. Reads the file and judges it; nothing of it is ever logged.

import { createHash, createPrivateKey, X509Certificate } from 'node:crypto';
import { open } from 'node:fs/promises';
import { HeadgateError, messageOf } from '../../base/errors.ts';

export interface PairCredentials {
  /** The private key and the certificate that belongs to it, PEM. */
  readonly identity: string;
  /** All certificates of the file, PEM: whoever shows one of them, or one that they have signed, is the peer. */
  readonly trusted: string;
  /** When the first of them ends, milliseconds since the epoch. */
  readonly expires: number;
  /** Tells one content from another; says nothing about the key. */
  readonly fingerprint: string;
}

/** Group members may read it (HAProxy's group, where it has another user); nobody else may do anything. */
const FORBIDDEN = 0o037;
const LONGEST = 256 * 1024;

/** Errors: PAIR_CREDENTIALS, retry later, that name the file and what to do. */
export async function readCredentials(path: string, now = Date.now()): Promise<PairCredentials> {
  try {
    return judge(await readPrivate(path), now);
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
    if ((mode & FORBIDDEN) !== 0)
      throw new Error(`Its mode is ${rights}: others could use the key in it, make it 0600`);
    if (size > LONGEST) throw new Error(`It is ${size} bytes long: ${LONGEST} are allowed`);
    return await file.readFile('utf8');
  } finally {
    await file.close();
  }
}

function judge(text: string, now: number): PairCredentials {
  const keys = blocksOf(text, '(?:[A-Z]+ )?PRIVATE KEY');
  const certificates = blocksOf(text, 'CERTIFICATE').map((pem) => ({ pem, parsed: parsed(pem) }));
  const [own] = certificates;
  const [key] = keys;
  if (key === undefined || keys.length > 1)
    throw new Error(`It has ${keys.length} private keys: one is needed`);
  if (own === undefined) throw new Error('It has no certificate');
  if (!own.parsed.checkPrivateKey(privateKey(key)))
    throw new Error('Its first certificate does not belong to its private key');
  const expires = Date.parse(own.parsed.validTo);
  if (expires <= now) throw new Error(`Its first certificate ended on ${own.parsed.validTo}`);
  const trusted = certificates.map(({ pem }) => `${pem}\n`).join('');
  const identity = `${key}\n${own.pem}\n`;
  const fingerprint = createHash('sha256').update(trusted).digest('hex').slice(0, 32);
  return { identity, trusted, expires, fingerprint };
}

function blocksOf(text: string, label: string): readonly string[] {
  return (
    text.match(new RegExp(`-----BEGIN ${label}-----[A-Za-z0-9+/=\\s]+-----END ${label}-----`, 'g')) ?? []
  );
}

function parsed(pem: string): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch {
    throw new Error('One of its certificates cannot be read');
  }
}

/** OpenSSL's own message could quote from the file. */
function privateKey(pem: string): ReturnType<typeof createPrivateKey> {
  try {
    return createPrivateKey(pem);
  } catch {
    throw new Error('Its private key cannot be read: it must have no passphrase');
  }
}
