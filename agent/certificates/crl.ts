// Checks certificate revocation lists (CRLs, RFC 5280 section 5.1) before HAProxy sees them: their PEM, the frame of their DER
// and when they expire. OpenSSL checks all else. Pure.

import { createHash } from 'node:crypto';
import { BIT_STRING, type DerValue, INTEGER, SEQUENCE, valuesIn } from '../base/der.ts';
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
  const [thisUpdate, nextUpdate = Number.POSITIVE_INFINITY] = timesOf(valuesIn(toBeSigned.content));
  return thisUpdate === undefined || Number.isNaN(thisUpdate + nextUpdate) ? undefined : nextUpdate;
}

function timesOf(values: readonly DerValue[]): readonly number[] {
  return values.filter(({ tag }) => tag === UTC_TIME || tag === GENERALIZED_TIME).map(timeOf);
}

/** What a list has for the certificates of one authority. */
export interface RevokedSerials {
  /** The authority's name, as DER has it, in hexadecimal digits. */
  readonly issuer: string;
  /** Milliseconds since the epoch. */
  readonly expires: number;
  readonly serials: ReadonlySet<bigint>;
}

/** `pem`: that checkCrl() gives. */
export function revokedSerials(pem: string): readonly RevokedSerials[] {
  return pemBlocks(pem).map((block) => {
    const [list] = valuesIn(derOf(block));
    const [toBeSigned] = valuesIn(list?.content ?? Buffer.alloc(0));
    const values = valuesIn(toBeSigned?.content ?? Buffer.alloc(0));
    // The version may be absent; then come the algorithm, the issuer, times, and certificates if there are any.
    const [, issuer, revoked] = values.filter(({ tag }) => tag === SEQUENCE);
    const [, expires = Number.POSITIVE_INFINITY] = timesOf(values);
    const serials = valuesIn(revoked?.content ?? Buffer.alloc(0)).map(({ content }) => serialIn(content));
    return { issuer: issuer?.content.toString('hex') ?? '', expires, serials: new Set(serials) };
  });
}

function serialIn(entry: Buffer): bigint {
  const number = valuesIn(entry).find(({ tag }) => tag === INTEGER);
  return BigInt(`0x${number?.content.toString('hex') || '0'}`);
}

/** NaN for a time in another form than RFC 5280 has. */
function timeOf({ tag, content }: DerValue): number {
  const text = content.toString('latin1');
  // RFC 5280: of two digits, 50 to 99 are years of the last century.
  const century = tag === GENERALIZED_TIME ? '' : text < '5' ? '20' : '19';
  const digits = `${century}${text}`;
  return TIME.test(digits) ? Date.parse(digits.replace(TIME, '$1-$2-$3T$4:$5:$6Z')) : Number.NaN;
}
