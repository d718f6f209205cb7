// Checks a certificate, its chain and its private key before HAProxy sees them, because HAProxy refuses its whole file for
// one that it cannot use. No message shows a part of them. Pure.

import { createHash, createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { pemBlocks } from '../base/pem.ts';
import { MIN_RSA_BITS } from '../base/rsa-bits.ts';
import { SecretText } from '../base/secret-text.ts';

export interface KeyPair {
  /** The chain, the server's certificate first, then the key: PEM as Node writes it. */
  readonly pem: SecretText;
  /** A hash of `pem`. */
  readonly fingerprint: string;
  /** SHA-1 of the server's certificate, as HAProxy shows it. */
  readonly sha1: string;
  /** How many certificates follow the server's. */
  readonly chainLength: number;
  /** The length of `pem`. */
  readonly bytes: number;
  /** The length of the server's key, if it is RSA; 0 otherwise. */
  readonly rsaBits: number;
  /** When the first certificate of the chain expires, milliseconds since the epoch. */
  readonly expires: number;
}

/** The sentence's end after `Cannot use Secret "default/shop": `. */
export type Unusable = string;

/** HAProxy reads a PEM of this size by a reload only, and keeps it in memory for each worker. */
const MAX_PEM_BYTES = 64 * 1024;
const MAX_CHAIN = 10;
const CURVES: readonly unknown[] = ['prime256v1', 'secp384r1', 'secp521r1'];

/** `certificates` and `key`: the texts of `tls.crt` and `tls.key`. */
export function checkKeyPair(certificates: string, key: string): KeyPair | Unusable {
  if (certificates.length + key.length > MAX_PEM_BYTES)
    return `tls.crt and tls.key have more than ${MAX_PEM_BYTES} bytes`;
  const chain = readCertificates(certificates, 'tls.crt', MAX_CHAIN);
  if (typeof chain === 'string') return chain;
  const privateKey = readKey(key);
  if (typeof privateKey === 'string') return privateKey;
  const [first] = chain;
  if (first === undefined) return 'tls.crt has no certificate';
  const fault = faultOfKey(first.publicKey) ?? faultOfChain(chain, privateKey);
  if (fault !== undefined) return fault;
  const pem = [...chain.map(String), String(privateKey.export({ type: 'pkcs8', format: 'pem' }))].join('');
  return {
    pem: new SecretText(pem),
    fingerprint: createHash('sha256').update(pem).digest('hex').slice(0, 32),
    sha1: first.fingerprint.replaceAll(':', ''),
    chainLength: chain.length - 1,
    bytes: Buffer.byteLength(pem),
    rsaBits: first.publicKey.asymmetricKeyDetails?.modulusLength ?? 0,
    expires: Math.min(...chain.map(({ validToDate }) => validToDate.getTime())),
  };
}

/** `field`: where the text comes from, for messages. */
export function readCertificates(
  text: string,
  field: string,
  most: number,
): readonly X509Certificate[] | Unusable {
  const blocks = pemBlocks(text).filter(({ label }) => label === 'CERTIFICATE');
  if (blocks.length === 0) return `${field} has no certificate in PEM`;
  if (blocks.length > most) return `${field} has ${blocks.length} certificates: at most ${most} are allowed`;
  const certificates: X509Certificate[] = [];
  for (const [at, block] of blocks.entries()) {
    try {
      certificates.push(new X509Certificate(block.text));
    } catch {
      return `certificate ${at + 1} of ${field} cannot be read`;
    }
  }
  return certificates;
}

function readKey(text: string): KeyObject | Unusable {
  const block = pemBlocks(text).find(({ label }) => label.endsWith('PRIVATE KEY'));
  if (block === undefined) return 'tls.key has no private key in PEM';
  if (block.label.startsWith('ENCRYPTED') || block.text.includes('\nProc-Type: 4,ENCRYPTED\n'))
    return 'tls.key is encrypted: HAProxy needs it without a passphrase';
  try {
    return createPrivateKey(block.text);
  } catch {
    return 'tls.key cannot be read';
  }
}

function faultOfKey({
  asymmetricKeyType: type,
  asymmetricKeyDetails: details,
}: KeyObject): Unusable | undefined {
  if (type === 'rsa' && (details?.modulusLength ?? 0) >= MIN_RSA_BITS) return undefined;
  if (type === 'ec' && CURVES.includes(details?.namedCurve)) return undefined;
  if (type === 'ed25519') return undefined;
  const size = details?.modulusLength ?? details?.namedCurve ?? '';
  return `the key is ${type} ${size}: allowed are RSA of ${MIN_RSA_BITS} bits or more, ECDSA with P-256, P-384 or P-521, and Ed25519`;
}

function faultOfChain(chain: readonly X509Certificate[], key: KeyObject): Unusable | undefined {
  if (chain[0]?.checkPrivateKey(key) !== true)
    return 'tls.key is not the key of the first certificate of tls.crt, which must be that of the server';
  for (const [at, certificate] of chain.entries()) {
    const issuer = chain[at + 1];
    if (issuer !== undefined && !certificate.checkIssued(issuer))
      return `certificate ${at + 2} of tls.crt did not issue certificate ${at + 1}: the chain must be in order, from the server's to the last one`;
  }
  return undefined;
}
