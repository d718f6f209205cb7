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
}

export const ANY_CLIENT: Client = { from: undefined, user: '', hasCertificate: false };

/** The client in the question's fields. Errors: USAGE. */
export function clientOf(query: URLSearchParams): Client {
  const text = query.get('from') ?? '';
  const from = text === '' ? undefined : parseAddress(text.replace(/^\[(.*)\]$/, '$1'));
  if (text !== '' && from === undefined)
    throw new HeadgateError('USAGE', `Cannot use --from ${quote(text)}: it is not an IP address`, {
      retry: 'never',
    });
  return { from, user: query.get('user') ?? '', hasCertificate: query.get('certificate') === 'true' };
}
