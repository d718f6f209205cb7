// Reads and verifies a JSON Web Token (RFC 7519) as templates/haproxy/jwt.lua does, for `why`. No message shows a part of the token. Pure.

import { createPublicKey, verify } from 'node:crypto';
import { isMapping } from './validate.ts';

export interface VerifyingKey {
  readonly kid: string;
  readonly algorithm: string;
  readonly pem: string;
}

/** The claims of a token with a valid signature, or why it has none, as the end of a sentence. */
export function verifiedClaims(
  token: string,
  keys: readonly VerifyingKey[],
): { readonly claims: Readonly<Record<string, unknown>> } | string {
  const parts = token.split('.');
  const [header = '', payload = '', signature = ''] = parts;
  if (parts.length !== 3 || parts.some((part) => !/^[\w-]+$/.test(part)))
    return 'is not a signed token (JWS)';
  const names = objectOf(header);
  if (names === undefined) return 'has a header that is not JSON';
  if (names.crit !== undefined) return 'has critical fields, which are not known';
  const { kid = '', alg } = names;
  const key = keys.find((each) => each.kid === kid) ?? (keys.length === 1 ? keys[0] : undefined);
  if (typeof kid !== 'string' || key === undefined) return 'names a key that is not among them';
  if (alg !== key.algorithm) return `is signed by another algorithm than ${key.algorithm}, that of its key`;
  const isSigned = verify(
    `sha${key.algorithm.slice(2)}`,
    Buffer.from(`${header}.${payload}`),
    { key: createPublicKey(key.pem), dsaEncoding: 'ieee-p1363' },
    Buffer.from(signature, 'base64url'),
  );
  if (!isSigned) return 'has a wrong signature';
  const claims = objectOf(payload);
  return claims === undefined ? 'has claims that are not JSON' : { claims };
}

function objectOf(part: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString());
    return isMapping(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
