// A request as HAProxy sees it: its method, its host, its path as it is sent, and what its parameters are. Pure.

import { HeadgateError } from '../../../base/errors.ts';
import { quote } from '../../../base/quote.ts';

export interface AskedRequest {
  readonly isTls: boolean;
  readonly port: number;
  readonly method: string;
  /** In lower case, without a dot at its end: an IPv6 address in brackets. */
  readonly host: string;
  /** The address without brackets; '' if the host is a name. */
  readonly address: string;
  /** Percent-encoded; dot segments are as they were given. */
  readonly path: string;
  /** With the question mark; '' or absent for none. */
  readonly search?: string;
  /** The bytes of each parameter's first value, as characters; undefined: not known. */
  readonly query: ReadonlyMap<string, string> | undefined;
  /** Headers that every such request has when HAProxy looks for its rule, each with its values. Key: a name in lower case. */
  readonly headers: ReadonlyMap<string, readonly string[]>;
  /** It may have other headers, which are not known. */
  readonly hasOtherHeaders: boolean;
}

/** A GET request without further headers. Errors: USAGE if it is not a URL of HTTP. */
export function askedRequest(text: string): AskedRequest {
  const url = URL.parse(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    throw new HeadgateError(
      'USAGE',
      `Cannot look up ${quote(text)}: it is not a URL such as "https://example.org/path"`,
      { retry: 'never' },
    );
  const isTls = url.protocol === 'https:';
  const port = Number(url.port) || (isTls ? 443 : 80);
  // HAProxy takes a name with a dot at its end for the one without it.
  const host = url.hostname.toLowerCase().replace(/\.$/, '');
  // A URL parser resolves dot segments, which clients may send.
  const [, path = ''] = /^[a-z]+:\/\/[^/?#]*([^?#]*)/i.exec(text) ?? [];
  return {
    isTls,
    port,
    method: 'GET',
    host,
    address: addressOf(host),
    path: encoded(path === '' ? '/' : path),
    search: url.search,
    query: queryOf(url.search.slice(1)),
    headers: new Map([
      ['host', [url.host.toLowerCase()]],
      ['x-forwarded-proto', [isTls ? 'https' : 'http']],
      ['x-forwarded-port', [String(port)]],
    ]),
    hasOtherHeaders: false,
  };
}

/** The address without brackets; '' if the host is a name. */
export function addressOf(host: string): string {
  return isAddress(host) ? host.replace(/^\[(.*)\]$/, '$1') : '';
}

function isAddress(host: string): boolean {
  return host.startsWith('[') || /^\d+(\.\d+){3}$/.test(host);
}

/** A path as a client sends it. */
export function encoded(path: string): string {
  return path.replace(/[^!-~]+/gu, encodeURIComponent);
}

/** As templates/haproxy/routes.lua reads it. */
export function queryOf(text: string): ReadonlyMap<string, string> {
  const query = new Map<string, string>();
  for (const [, name = '', value = ''] of text.replaceAll('+', ' ').matchAll(/([^&=]+)=?([^&]*)/g)) {
    const key = decoded(name);
    if (!query.has(key)) query.set(key, decoded(value));
  }
  return query;
}

function decoded(text: string): string {
  return text.replace(/%([0-9a-fA-F]{2})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
}
