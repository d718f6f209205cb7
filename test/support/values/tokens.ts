// Keys and tokens of an identity provider, made when a test first asks.

import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';

export type TokenAlgorithm = 'RS256' | 'RS384' | 'RS512' | 'ES256' | 'ES384' | 'ES512';

export interface Signer {
  readonly kid: string;
  readonly algorithm: TokenAlgorithm;
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

export const ISSUER = 'https://id.example.org';
export const AUDIENCE = 'shop';

const CURVES = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' } as const;

export function signer(kid: string, algorithm: TokenAlgorithm, bits = 2048): Signer {
  const pair =
    algorithm in CURVES
      ? generateKeyPairSync('ec', { namedCurve: CURVES[algorithm as keyof typeof CURVES] })
      : generateKeyPairSync('rsa', { modulusLength: bits });
  return { kid, algorithm, ...pair };
}

export function pemOf({ publicKey }: Signer): string {
  return publicKey.export({ type: 'spki', format: 'pem' }).toString();
}

export function jwkOf({ kid, algorithm, publicKey }: Signer): Readonly<Record<string, unknown>> {
  return { ...publicKey.export({ format: 'jwk' }), kid, alg: algorithm, use: 'sig' };
}

export function jwksOf(...signers: readonly Signer[]): string {
  return JSON.stringify({ keys: signers.map(jwkOf) });
}

/** Claims that let in, at `now` in milliseconds since the epoch. */
export function goodClaims(now: number): Readonly<Record<string, unknown>> {
  const seconds = Math.floor(now / 1000);
  return { iss: ISSUER, aud: AUDIENCE, sub: 'ann', iat: seconds, nbf: seconds, exp: seconds + 600 };
}

export function part(value: unknown): string {
  if (Buffer.isBuffer(value)) return value.toString('base64url');
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
}

/** `claims`: a value, or the text or bytes of it. `header`: changes of the header, or its text or bytes. */
export function tokenOf(
  { kid, algorithm, privateKey }: Signer,
  claims: unknown,
  header: Readonly<Record<string, unknown>> | string | Buffer = {},
): string {
  const isWhole = typeof header === 'string' || Buffer.isBuffer(header);
  const text = `${part(isWhole ? header : { alg: algorithm, typ: 'JWT', kid, ...header })}.${part(claims)}`;
  const signature = sign(`sha${algorithm.slice(2)}`, Buffer.from(text), {
    key: privateKey,
    dsaEncoding: 'ieee-p1363',
  });
  return `${text}.${signature.toString('base64url')}`;
}
