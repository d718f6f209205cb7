// Reads and verifies a JSON Web Token (RFC 7519) as templates/haproxy/jwt.lua does, for `why`. No message shows a part of the token. Pure.

import { createPublicKey, verify } from 'node:crypto';
import { type StrictJson, strictJson } from './strict-json.ts';

export interface VerifyingKey {
  readonly kid: string;
  readonly algorithm: string;
  readonly pem: string;
}

export type Claims = ReadonlyMap<string, StrictJson>;

const MOST_TOKEN_BYTES = 8192;
const MOST_HEADER_BYTES = 2048;

/** The claims of a token with a valid signature, or why it has none, as the end of a sentence. */
export function verifiedClaims(
  token: string,
  keys: readonly VerifyingKey[],
): { readonly claims: Claims } | string {
  if (token.length > MOST_TOKEN_BYTES) return `has more than ${MOST_TOKEN_BYTES} bytes`;
  const parts = token.split('.');
  const [header = '', payload = '', signature = ''] = parts;
  if (parts.length !== 3 || parts.some((part) => !/^[A-Za-z0-9_-]+$/.test(part)))
    return 'is not a signed token (JWS)';
  if (header.length > MOST_HEADER_BYTES) return `has a header of more than ${MOST_HEADER_BYTES} bytes`;
  const names = objectOf(header);
  if (names === undefined) return 'has a header that is not JSON';
  if (names.has('crit')) return 'has critical fields, which are not known';
  const kid = names.get('kid') ?? { kind: 'text', text: '' };
  const named = kid.kind === 'text' ? keys.find((each) => each.kid === kid.text) : undefined;
  const key = named ?? (kid.kind === 'text' && keys.length === 1 ? keys[0] : undefined);
  if (key === undefined) return 'names a key that is not among them';
  const algorithm = names.get('alg');
  if (algorithm?.kind !== 'text' || algorithm.text !== key.algorithm)
    return `is signed by another algorithm than ${key.algorithm}, that of its key`;
  const isSigned = verify(
    `sha${key.algorithm.slice(2)}`,
    Buffer.from(`${header}.${payload}`),
    { key: createPublicKey(key.pem), dsaEncoding: 'ieee-p1363' },
    bytesOf(signature) ?? Buffer.alloc(0),
  );
  if (!isSigned) return 'has a wrong signature';
  const claims = objectOf(payload);
  return claims === undefined ? 'has claims that are not JSON' : { claims };
}

function objectOf(part: string): Claims | undefined {
  const bytes = bytesOf(part);
  const value = bytes && strictJson(bytes);
  return value?.kind === 'object' ? value.names : undefined;
}

/** undefined for a text that no bytes have. */
function bytesOf(part: string): Buffer | undefined {
  return part.length % 4 === 1 ? undefined : Buffer.from(part, 'base64url');
}
