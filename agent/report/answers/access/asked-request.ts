// A GET request as HAProxy sees it: its host, its path as it is sent, and what its parameters are. Pure.

import { HeadgateError } from '../../../base/errors.ts';
import { quote } from '../../../base/quote.ts';

export interface AskedRequest {
  readonly isTls: boolean;
  readonly port: number;
  /** In lower case, without a dot at its end: an IPv6 address in brackets. */
  readonly host: string;
  /** The address without brackets; '' if the host is a name. */
  readonly address: string;
  /** Percent-encoded; dot segments are as they were given. */
  readonly path: string;
  /** The bytes of each parameter's first value, as characters. */
  readonly query: ReadonlyMap<string, string>;
  /** Headers that every such request has when HAProxy looks for its rule. Key: a name in lower case. */
  readonly headers: ReadonlyMap<string, string>;
}

/** Errors: USAGE if it is not a URL of HTTP. */
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
    host,
    address: isAddress(host) ? host.replace(/^\[(.*)\]$/, '$1') : '',
    path: encoded(path === '' ? '/' : path),
    query: queryOf(url.search.slice(1)),
    headers: new Map([
      ['host', url.host.toLowerCase()],
      ['x-forwarded-proto', isTls ? 'https' : 'http'],
      ['x-forwarded-port', String(port)],
    ]),
  };
}

function isAddress(host: string): boolean {
  return host.startsWith('[') || /^\d+(\.\d+){3}$/.test(host);
}

/** As a client sends it. */
function encoded(path: string): string {
  return path.replace(/[^!-~]+/gu, encodeURIComponent);
}

/** As templates/haproxy/routes.lua reads it. */
function queryOf(text: string): ReadonlyMap<string, string> {
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
