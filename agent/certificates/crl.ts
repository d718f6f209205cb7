// Checks certificate revocation lists (CRLs, RFC 5280 section 5.1) before HAProxy sees them: their PEM, the frame of their DER
// and when they expire. OpenSSL checks all else. Pure.

import { createHash } from 'node:crypto';
import { type PemBlock, pemBlocks } from '../base/pem.ts';
import { SecretText } from '../base/secret-text.ts';
import { MAX_AUTHORITY_BYTES } from './authority.ts';
import type { Unusable } from './key-pair.ts';

export interface Crl {
  /** PEM, without the text around the lists. */
  readonly pem: SecretText;
  /** A hash of `pem`. */
  readonly fingerprint: string;
  /** When the first list expires: then OpenSSL refuses the clients of its authority. Milliseconds since the epoch. */
  readonly expires: number;
}

interface DerValue {
  readonly tag: number | undefined;
  readonly content: Buffer;
}

const SEQUENCE = 0x30;
const BIT_STRING = 0x03;
const UTC_TIME = 0x17;
const GENERALIZED_TIME = 0x18;
const TIME = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/;

/** The object lacks the field. */
export const NO_CRL: Unusable = 'it has no ca.crl';

/** `text`: of `ca.crl`, with a list of each authority. */
export function checkCrl(text: string): Crl | Unusable {
  if (text.length > MAX_AUTHORITY_BYTES) return `ca.crl has more than ${MAX_AUTHORITY_BYTES} bytes`;
  const blocks = pemBlocks(text).filter(({ label }) => label === 'X509 CRL');
  if (blocks.length === 0) return 'ca.crl has no revocation list in PEM';
  const expiries: number[] = [];
  for (const [at, block] of blocks.entries()) {
    const expires = expiryOf(derOf(block));
    if (expires === undefined) return `revocation list ${at + 1} of ca.crl cannot be read`;
    expiries.push(expires);
  }
  const pem = blocks.map((block) => block.text).join('');
  return {
    pem: new SecretText(pem),
    fingerprint: createHash('sha256').update(pem).digest('hex').slice(0, 32),
    expires: Math.min(...expiries),
  };
}

/** Empty if it is not base64. */
function derOf({ text }: PemBlock): Buffer {
  const encoded = text.replace(/^-----.*$/gm, '').replaceAll('\n', '');
  const der = Buffer.from(encoded, 'base64');
  return der.toString('base64') === encoded ? der : Buffer.alloc(0);
}

/** Infinity for a list without nextUpdate; undefined if it is no revocation list. */
function expiryOf(der: Buffer): number | undefined {
  const [list, ...others] = valuesIn(der);
  if (list?.tag !== SEQUENCE || others.length > 0) return undefined;
  const [toBeSigned, algorithm, signature] = valuesIn(list.content);
  if (toBeSigned?.tag !== SEQUENCE || algorithm?.tag !== SEQUENCE || signature?.tag !== BIT_STRING)
    return undefined;
  const times = valuesIn(toBeSigned.content).filter(
    ({ tag }) => tag === UTC_TIME || tag === GENERALIZED_TIME,
  );
  const [thisUpdate, nextUpdate = Number.POSITIVE_INFINITY] = times.map(timeOf);
  return thisUpdate === undefined || Number.isNaN(thisUpdate + nextUpdate) ? undefined : nextUpdate;
}

/** NaN for a time in another form than RFC 5280 has. */
function timeOf({ tag, content }: DerValue): number {
  const text = content.toString('latin1');
  // RFC 5280: of two digits, 50 to 99 are years of the last century.
  const century = tag === GENERALIZED_TIME ? '' : text < '5' ? '20' : '19';
  const digits = `${century}${text}`;
  return TIME.test(digits) ? Date.parse(digits.replace(TIME, '$1-$2-$3T$4:$5:$6Z')) : Number.NaN;
}

/** The values that follow each other in DER (X.690); empty if one is cut off. */
function valuesIn(der: Buffer): readonly DerValue[] {
  const values: DerValue[] = [];
  for (let at = 0; at < der.length; ) {
    const first = der[at + 1] ?? 0x80;
    const lengthBytes = first < 0x80 ? 0 : first - 0x80;
    const start = at + 2 + lengthBytes;
    if (first === 0x80 || lengthBytes > 4 || start > der.length) return [];
    const end = start + (lengthBytes === 0 ? first : der.readUIntBE(at + 2, lengthBytes));
    if (end > der.length) return [];
    values.push({ tag: der[at], content: der.subarray(start, end) });
    at = end;
  }
  return values;
}
