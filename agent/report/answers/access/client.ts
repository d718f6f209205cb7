// The client that `why` is asked about: what is known of it. Pure.

import { X509Certificate } from 'node:crypto';
import { HeadgateError } from '../../../base/errors.ts';
import { parseAddress } from '../../../base/ip.ts';
import { quote } from '../../../base/quote.ts';
import type { Family } from '../../../model/load-balancer.ts';

export interface Client {
  /** undefined: any. */
  readonly from: { readonly address: string; readonly family: Family } | undefined;
  /** It gives the password of this user; '' if that is not known. */
  readonly user: string;
  /** It has a certificate of the authorities that are asked for; false if that is not known. */
  readonly hasCertificate: boolean;
  /** What it shows if it is asked for a certificate, its own first; absent: not known. */
  readonly certificates?: readonly X509Certificate[];
  /** Its request has these, each with its values. Key: a name in lower case. Absent: none is known. */
  readonly headers?: ReadonlyMap<string, readonly string[]>;
  /** Absent: GET. */
  readonly method?: string;
  /** When it asks: milliseconds since the epoch. */
  readonly now?: number;
}

export const ANY_CLIENT: Client = { from: undefined, user: '', hasCertificate: false };

/** HAProxy has room for so much, besides what its rules add. */
export const MAX_HEADERS_BYTES = 15_360;
export const MAX_CERTIFICATES = 16;
const MAX_CERTIFICATES_BYTES = 64 * 1_024;

/** The client in the question's fields. Errors: USAGE. */
export function clientOf(query: URLSearchParams, now = Date.now()): Client {
  const text = query.get('from') ?? '';
  const from = text === '' ? undefined : parseAddress(text.replace(/^\[(.*)\]$/, '$1'));
  if (text !== '' && from === undefined) throw unusable(`--from ${quote(text)}`, 'it is not an IP address');
  const headers = headersOf(query.get('header') ?? '');
  const certificates = certificatesOf(query.get('cert') ?? '');
  const method = methodOf(query.get('method') ?? '');
  return {
    ...{ from, user: query.get('user') ?? '', hasCertificate: query.get('certificate') === 'true' },
    ...(headers && { headers, now }),
    ...(certificates && { certificates, now }),
    ...(method && { method }),
  };
}

/** `NAME: VALUE`, a line for each. Errors: USAGE, which shows no value, because it may be a secret. */
function headersOf(text: string): ReadonlyMap<string, readonly string[]> | undefined {
  if (text === '') return undefined;
  if (Buffer.byteLength(text) > MAX_HEADERS_BYTES)
    throw unusable('--header', `HAProxy takes at most ${MAX_HEADERS_BYTES} bytes of headers`);
  const headers = new Map<string, readonly string[]>();
  for (const line of text.split('\n')) {
    const [, name, value = ''] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):\s*([^\p{Cc}]*)$/u.exec(line) ?? [];
    if (name === undefined) throw unusable('--header', 'it is not "NAME: VALUE"');
    const key = name.toLowerCase();
    headers.set(key, [...(headers.get(key) ?? []), value.trim()]);
  }
  return headers;
}

/** DER in base64url, with dots between them. Errors: USAGE. */
function certificatesOf(text: string): readonly X509Certificate[] | undefined {
  if (text === '') return undefined;
  const all = text.split('.');
  if (all.length > MAX_CERTIFICATES || text.length > MAX_CERTIFICATES_BYTES)
    throw unusable('--cert', `at most ${MAX_CERTIFICATES} certificates with 48 KB are allowed`);
  try {
    return all.map((each) => new X509Certificate(Buffer.from(each, 'base64url')));
  } catch {
    throw unusable('--cert', 'it has a certificate that cannot be read');
  }
}

/** '' for none. Errors: USAGE. */
function methodOf(text: string): string {
  if (text === 'CONNECT') throw unusable('--method CONNECT', 'HAProxy answers it with 405 everywhere');
  if (text !== '' && !/^[A-Z][A-Z-]{0,31}$/.test(text))
    throw unusable(`--method ${quote(text)}`, 'a method is a word in upper case, such as POST');
  return text;
}

function unusable(flag: string, why: string): HeadgateError {
  return new HeadgateError('USAGE', `Cannot use ${flag}: ${why}`, { retry: 'never' });
}
