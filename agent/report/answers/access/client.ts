// The client that `why` is asked about: what is known of it. Pure.

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
  /** Its request has these. Key: a name in lower case. Absent: none is known. */
  readonly headers?: ReadonlyMap<string, string>;
  /** When it asks: milliseconds since the epoch. */
  readonly now?: number;
}

export const ANY_CLIENT: Client = { from: undefined, user: '', hasCertificate: false };

/** The client in the question's fields. Errors: USAGE. */
export function clientOf(query: URLSearchParams, now = Date.now()): Client {
  const text = query.get('from') ?? '';
  const from = text === '' ? undefined : parseAddress(text.replace(/^\[(.*)\]$/, '$1'));
  if (text !== '' && from === undefined)
    throw new HeadgateError('USAGE', `Cannot use --from ${quote(text)}: it is not an IP address`, {
      retry: 'never',
    });
  const headers = headersOf(query.get('header') ?? '');
  return {
    ...{ from, user: query.get('user') ?? '', hasCertificate: query.get('certificate') === 'true' },
    ...(headers && { headers, now }),
  };
}

/** `NAME: VALUE`, a line for each. Errors: USAGE, which shows no value, because it may be a secret. */
function headersOf(text: string): ReadonlyMap<string, string> | undefined {
  if (text === '') return undefined;
  const lines = text.split('\n').map((line) => /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):\s*([^\p{Cc}]*)$/u.exec(line));
  if (lines.includes(null))
    throw new HeadgateError('USAGE', 'Cannot use --header: it is not "NAME: VALUE"', { retry: 'never' });
  return new Map(lines.map((line) => [(line?.[1] ?? '').toLowerCase(), (line?.[2] ?? '').trim()]));
}
