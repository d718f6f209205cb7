// Checks the public keys that tokens are signed for, a JWKS (RFC 7517) or PEM texts, before HAProxy sees them, because HAProxy refuses
// its whole file for a key that it cannot read. A key has one algorithm, whatever a token says. Pure.

import { createHash, createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto';
import { messageOf } from '../../base/errors.ts';
import { quote } from '../../base/quote.ts';
import { SecretText } from '../../base/secret-text.ts';
import { isMapping } from '../../base/validate.ts';
import type { TokenKey } from '../../model/load-balancer.ts';
import type { Unusable } from '../key-pair.ts';

export interface TokenKeys {
  readonly keys: readonly TokenKey[];
  /** The keys as a text; nothing of it is secret. */
  readonly pem: SecretText;
  /** A hash of `pem`. */
  readonly fingerprint: string;
  readonly expires: number;
  /** A sentence's end for each key that cannot be used. */
  readonly faults: readonly string[];
}

/** The field of a ConfigMap or Secret with a JWKS; the names of others end with `.pem`. */
export const JWKS_FIELD = 'jwks.json';
export const PEM_FIELD = /^[A-Za-z0-9._-]+\.pem$/;
export const MAX_JWKS_BYTES = 256 * 1024;

const MOST_KEYS = 30;
/** Others may be of kinds that cannot be used. Each takes some 50 µs. */
const MOST_READ = 200;
const MOST_FAULTS = 5;
/** Printable, and short enough for a line of HAProxy's file. */
const KID = /^[!-~]{0,128}$/;
const MIN_RSA_BITS = 2048;
/** A longer one takes a thread of HAProxy for long. */
const MAX_RSA_BITS = 4096;
const MAX_EXPONENT = 65537n;
const RSA_ALGORITHMS = ['RS256', 'RS384', 'RS512'] as const;
/** By the name of the curve in OpenSSL. */
const CURVES = { prime256v1: 'ES256', secp384r1: 'ES384', secp521r1: 'ES512' } as const;
const ALLOWED =
  'RS256, RS384 and RS512 with 2048 to 4096 bits, and ES256, ES384 and ES512 are what HAProxy can verify';

interface NamedKey {
  readonly kid: string;
  /** '' if the key does not name one. */
  readonly algorithm: string;
  readonly key: KeyObject;
}

/** `fields`: of a ConfigMap or Secret. */
export function checkTokenFields(fields: Readonly<Record<string, string>>): TokenKeys | Unusable {
  const text = fields[JWKS_FIELD];
  if (text !== undefined) return checkJwks(text);
  const names = Object.keys(fields).filter((name) => PEM_FIELD.test(name));
  if (names.length === 0) return `it has no ${JWKS_FIELD}, and no field that ends with .pem`;
  if (names.length > MOST_READ) return tooMany(names.length);
  return checked(
    names.sort().map((name) => {
      const kid = name.slice(0, -'.pem'.length);
      const pem = fields[name] ?? '';
      if (pem.includes('PRIVATE KEY'))
        return `field ${quote(name)} has a private key, which belongs nowhere else`;
      return keyOf(kid, '', () => createPublicKey(pem));
    }),
  );
}

export function checkJwks(text: string): TokenKeys | Unusable {
  if (text.length > MAX_JWKS_BYTES) return `its JWKS has more than ${MAX_JWKS_BYTES} bytes`;
  let set: unknown;
  try {
    set = JSON.parse(text);
  } catch {
    return 'its JWKS is not JSON';
  }
  if (!isMapping(set) || !Array.isArray(set.keys)) return 'its JWKS has no list "keys"';
  const own = set.keys.filter(isForSignatures);
  return own.length > MOST_READ ? tooMany(own.length) : checked(own.map(jwk));
}

function tooMany(count: number): string {
  return `it has ${count} keys, and at most ${MOST_KEYS} are allowed`;
}

/** For texts of an earlier agent. */
export function checkTokenKeys(keys: readonly TokenKey[]): TokenKeys | Unusable {
  return checked(keys.map(({ kid, algorithm, pem }) => keyOf(kid, algorithm, () => createPublicKey(pem))));
}

/** Identity providers have keys for encryption in the same list. */
function isForSignatures(key: unknown): boolean {
  if (!isMapping(key)) return true;
  return key.use !== 'enc' && !(Array.isArray(key.key_ops) && !key.key_ops.includes('verify'));
}

function jwk(value: unknown): NamedKey | string {
  if (!isMapping(value)) return 'a key is not a mapping';
  const { kid = '', alg = '', kty, d, k, n, e, crv, x, y } = value;
  if (typeof kid !== 'string' || !KID.test(kid))
    return 'a "kid" is not a text of at most 128 printable characters';
  const name = `key ${quote(kid)}`;
  if (d !== undefined || k !== undefined || kty === 'oct')
    return `${name} has a secret part, with which tokens could be signed`;
  if (typeof alg !== 'string' || (kty !== 'RSA' && kty !== 'EC')) return `${name} cannot be used: ${ALLOWED}`;
  const key = kty === 'RSA' ? { kty, n, e } : { kty, crv, x, y };
  return keyOf(kid, alg, () => createPublicKey({ key: key as JsonWebKey, format: 'jwk' }));
}

function keyOf(kid: string, algorithm: string, read: () => KeyObject): NamedKey | string {
  if (!KID.test(kid)) return 'the name of a key has more than 128 characters';
  try {
    return { kid, algorithm, key: read() };
  } catch (error) {
    return `key ${quote(kid)} cannot be read: ${messageOf(error)}`;
  }
}

function checked(found: readonly (NamedKey | string)[]): TokenKeys | Unusable {
  const keys = new Map<string, TokenKey>();
  const faults: string[] = [];
  for (const each of found) {
    const key = typeof each === 'string' ? each : usable(each);
    if (typeof key === 'string') faults.push(key);
    else if (keys.has(key.kid)) faults.push(`key ${quote(key.kid)} is there twice`);
    else keys.set(key.kid, key);
  }
  if (keys.size > MOST_KEYS) return tooMany(keys.size);
  if (keys.size === 0) return faults[0] ?? 'it has no key for signatures';
  const all = [...keys.values()].sort((a, b) => (a.kid < b.kid ? -1 : 1));
  const text = JSON.stringify(all);
  return {
    keys: all,
    pem: new SecretText(text),
    fingerprint: createHash('sha256').update(text).digest('hex').slice(0, 32),
    expires: Number.POSITIVE_INFINITY,
    faults: faults.slice(0, MOST_FAULTS),
  };
}

function usable({ kid, algorithm, key }: NamedKey): TokenKey | string {
  const own = algorithmOf(key, algorithm);
  if (own === undefined) return `key ${quote(kid)} cannot be used: ${ALLOWED}`;
  const pem = key.export({ type: 'spki', format: 'pem' }).toString();
  const id = `k${createHash('sha256').update(`${own} ${pem}`).digest('hex').slice(0, 20)}`;
  return { kid, algorithm: own, id, pem };
}

/** `named`: what the key says of itself. */
function algorithmOf(key: KeyObject, named: string): TokenKey['algorithm'] | undefined {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details = {} } = key;
  if (key.type !== 'public') return undefined;
  if (type === 'ec') {
    const own = CURVES[details.namedCurve as keyof typeof CURVES];
    return named === '' || named === own ? own : undefined;
  }
  const { modulusLength: bits = 0, publicExponent: exponent = 0n } = details;
  const isRsa = type === 'rsa' && bits >= MIN_RSA_BITS && bits <= MAX_RSA_BITS;
  if (!isRsa || exponent < 3n || exponent > MAX_EXPONENT) return undefined;
  return named === '' ? 'RS256' : RSA_ALGORITHMS.find((each) => each === named);
}
