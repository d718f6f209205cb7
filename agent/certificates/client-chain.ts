// Whether HAProxy accepts a client's certificate, as OpenSSL verifies it: its authorities, validity, purpose and revocation. Says what
// it lacks. Pure.

import type { X509Certificate } from 'node:crypto';
import { SEQUENCE, valuesIn } from '../base/der.ts';
import { type RevokedSerials, revokedSerials } from './crl.ts';
import { readCertificates } from './key-pair.ts';

export interface ClientChain {
  /** The client's own first; the others in any order. */
  readonly certificates: readonly X509Certificate[];
  /** PEM of the authorities. */
  readonly authority: string;
  /** The most intermediate certificates; undefined: as many as OpenSSL takes. */
  readonly depth?: number | undefined;
  /** PEM of the revocation lists; undefined: none is asked. */
  readonly crl: string | undefined;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

const MOST_CERTIFICATES = 500;
/** As OpenSSL has it, with the client's own and that of the authority. */
const LONGEST = 102;
const CLIENT_AUTHENTICATION = '1.3.6.1.5.5.7.3.2';

/** The end of a sentence about the certificate; '' if it is accepted. */
export function clientFault({ certificates, authority, depth, crl, now }: ClientChain): string {
  const [own, ...others] = certificates;
  if (own === undefined) return 'is none';
  const trusted = readCertificates(authority, 'ca.crt', MOST_CERTIFICATES);
  if (typeof trusted === 'string') return 'cannot be compared with its authorities';
  const chain = chainOf(own, trusted, others);
  // HAProxy has other certificates of these authorities, if it has a depth of chains.
  if (chain === undefined || (depth !== undefined && chain.length === 1))
    return 'is not of these authorities';
  if (depth !== undefined && chain.length - 2 > depth)
    return `has ${chain.length - 2} intermediate certificates, and at most ${depth} are allowed`;
  const expired = chain.find(({ validToDate }) => validToDate.getTime() < now);
  if (expired !== undefined)
    return `${expired === own ? 'expired' : 'has an authority that expired'} at ${expired.validToDate.toISOString()}`;
  if (chain.some(({ validFromDate }) => validFromDate.getTime() > now)) return 'is not valid yet';
  const { keyUsage } = own;
  if (keyUsage !== undefined && !keyUsage.includes(CLIENT_AUTHENTICATION))
    return 'is not for the authentication of clients (extended key usage)';
  return crl === undefined ? '' : revocationFault(chain, revokedSerials(crl), now);
}

/** The client's own first, then issuer by issuer up to one that is trusted and its own issuer; undefined if there is none. */
function chainOf(
  own: X509Certificate,
  trusted: readonly X509Certificate[],
  others: readonly X509Certificate[],
): readonly X509Certificate[] | undefined {
  const chain = [own];
  while (chain.length <= LONGEST) {
    const last = chain.at(-1) ?? own;
    const isTrusted = trusted.some(({ fingerprint256 }) => fingerprint256 === last.fingerprint256);
    if (isIssuedBy(last, last)) return isTrusted ? chain : undefined;
    const issuer = [...trusted, ...others].find((each) => isIssuedBy(last, each) && !chain.includes(each));
    if (issuer === undefined) return undefined;
    chain.push(issuer);
  }
  return undefined;
}

function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  if (!certificate.checkIssued(issuer)) return false;
  return (certificate === issuer || issuer.ca) && certificate.verify(issuer.publicKey);
}

/** OpenSSL asks the list of each issuer in the chain. */
function revocationFault(
  chain: readonly X509Certificate[],
  lists: readonly RevokedSerials[],
  now: number,
): string {
  for (const { raw, serialNumber } of chain) {
    const issuer = issuerOf(raw);
    const ofIssuer = lists.filter((list) => list.issuer === issuer);
    if (ofIssuer.length === 0) return 'has an authority without a revocation list';
    const valid = ofIssuer.filter(({ expires }) => expires >= now);
    if (valid.length === 0) return 'has an authority whose revocation list expired';
    if (valid.some(({ serials }) => serials.has(BigInt(`0x${serialNumber}`)))) return 'is revoked';
  }
  return '';
}

/** The issuer's name, as DER has it, in hexadecimal digits. */
function issuerOf(der: Buffer): string {
  const [certificate] = valuesIn(der);
  const [toBeSigned] = valuesIn(certificate?.content ?? Buffer.alloc(0));
  const [, issuer] = valuesIn(toBeSigned?.content ?? Buffer.alloc(0)).filter(({ tag }) => tag === SEQUENCE);
  return issuer?.content.toString('hex') ?? '';
}
