// What an authorization server is asked about a request, as templates/haproxy/external-auth.lua asks it: its answer decides. Shows no
// value of a header that the client sends. Pure.

import { labelsOfListener } from '../../../model/names.ts';
import type { ExternalAuth } from '../../../model/routes.ts';
import type { AskedRequest } from './asked-request.ts';
import { type CheckResult, refused, type Way } from './check.ts';
import type { Client } from './client.ts';
import { forwardedClient } from './forwarded-client.ts';

export function externalAuth({ listener, request, client }: Way): CheckResult | undefined {
  const rule = request?.rule;
  const asks = rule?.externalAuth;
  if (rule === undefined || asks === undefined || rule.action.kind === 'answer') return undefined;
  if (listener.asksServers !== true) return refused('no authorization server can be asked', 'status 403');
  const { namespace = '', service = '', port = '' } = labelsOfListener(asks.pool) ?? {};
  if (service === '') return refused('the authorization server has no pool', 'status 503');
  const server = `Service ${namespace}/${service.split('.', 1)[0]}, port ${port}`;
  const words = `that ${server}, lets in (${placeOf(asks)}, only by status ${asks.letsIn}${keptFor(asks)})`;
  const asked = request?.asked;
  return {
    ...{ result: 'asked', detail: words, answer: refusalInWords(asks) },
    ...(asked && {
      question: questionOf(
        asks,
        asked,
        { ...client, from: forwardedClient(listener, client) },
        rule.auth?.removesHeader === true,
      ),
    }),
  };
}

function refusalInWords({ refusal: { signIn, passesRedirects } }: ExternalAuth): string {
  if (signIn !== '') return `status 302 to ${signIn}, 403 or 503`;
  return passesRedirects ? 'its redirect, status 401, 403 or 503' : 'status 401, 403 or 503';
}

/** All of it that decides, because `plan` compares these words. */
function placeOf({ method, host, path, isPrefix }: ExternalAuth): string {
  const own = method === 'of-request' || method === 'GET' ? '' : `${method} `;
  return `${own}${host}${isPrefix ? `${path}/…` : path}`;
}

/** '' if each request is asked about. */
function keptFor({ cache }: ExternalAuth): string {
  const longest = Math.max(0, ...(cache?.seconds ?? []).map(([, seconds]) => seconds));
  if (cache === undefined || longest === 0) return '';
  return `, which counts for up to ${longest} s for the same ${cache.variables.join(', ')}`;
}

/** As templates/haproxy/external-auth.lua has them. */
export const OF_CONNECTIONS =
  namesIn(`connection keep-alive proxy-connection te trailer transfer-encoding upgrade http2-settings expect
  content-length content-encoding host`);
export const NEVER_ASKED =
  namesIn(`range if-match if-none-match if-modified-since if-unmodified-since if-range x-original-url x-original-uri
  x-original-method x-auth-request-redirect x-sent-from x-real-ip x-scheme x-forwarded-for x-forwarded-host x-forwarded-uri
  x-forwarded-method`);

function namesIn(text: string): ReadonlySet<string> {
  return new Set(text.split(/\s+/));
}

function questionOf(
  asks: ExternalAuth,
  asked: AskedRequest,
  client: Client,
  isPasswordRemoved: boolean,
): readonly string[] {
  const values = valuesOf(asked, client);
  const method = asks.method === 'of-request' ? asked.method : asks.method;
  const host = asks.host === '' ? (values.http_host ?? '') : filled(asks.host, values);
  const path = `${asks.isPrefix ? asks.path : filled(asks.path, values)}${asks.isPrefix ? values.request_uri : ''}`;
  const own = ownHeaders(asks, values);
  const given = [...(client.headers?.keys() ?? [])].filter(
    (name) => isSent(asks, name) && !(isPasswordRemoved && name === 'authorization'),
  );
  const taken = asks.responseHeaders;
  return [
    `${method} ${path} with Host ${host}, without a body`,
    ...(own.length === 0 ? [] : [`with ${own.join(', ')}`]),
    ...(given.length === 0 ? [] : [`with the request's own ${given.join(', ')}`]),
    taken === undefined
      ? 'if it lets in, members get the headers of its answer'
      : `if it lets in, members get ${taken.length === 0 ? 'no header' : taken.join(', ')} of its answer`,
  ];
}

function valuesOf(asked: AskedRequest, { from }: Client): Readonly<Record<string, string>> {
  const uri = `${asked.path}${asked.search ?? ''}`;
  const authority = asked.headers.get('host')?.[0] ?? asked.host;
  return {
    host: asked.host,
    http_host: authority,
    request_uri: uri,
    escaped_request_uri: encodeURIComponent(uri),
    scheme: asked.isTls ? 'https' : 'http',
    uri: asked.path,
    request_method: asked.method,
    remote_addr: from?.address ?? 'the client’s address',
  };
}

const UNCHANGED = new Set(['host', 'http_host', 'escaped_request_uri', 'scheme', 'remote_addr']);

/** Within a query, a value cannot become another parameter. */
function filled(text: string, values: Readonly<Record<string, string>>): string {
  const at = text.indexOf('?');
  const [path, query] = at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at)];
  const put = (part: string, isQuery: boolean): string =>
    part.replace(/\$([a-z_]+)/g, (whole, name: string) => {
      const value = values[name];
      if (value === undefined) return whole;
      return isQuery && !UNCHANGED.has(name) ? encodeURIComponent(value) : value;
    });
  return put(path, false) + put(query, true);
}

/** What HAProxy says of the request. */
function ownHeaders(asks: ExternalAuth, values: Readonly<Record<string, string>>): readonly string[] {
  const named = asks.requestHeaders;
  const {
    scheme,
    http_host: authority,
    request_uri: uri = '',
    request_method: method,
    remote_addr: client,
  } = values;
  const own = new Map([
    ['x-original-url', `${scheme}://${authority}${uri}`],
    ['x-original-method', method],
    ['x-real-ip', client],
    ['x-forwarded-for', client],
    ['x-forwarded-host', authority],
  ]);
  if (named === undefined) {
    own.set('x-sent-from', 'headgate');
    if (asks.refusal.redirect !== '')
      own.set('x-auth-request-redirect', filled(asks.refusal.redirect, values));
  } else {
    own.set('x-forwarded-uri', uri);
    own.set('x-forwarded-method', method);
  }
  return [...own]
    .filter(([name]) => named?.includes(name) !== false)
    .map(([name, value]) => `${name}: ${value}`);
}

/** A header of the client. */
function isSent({ requestHeaders: named }: ExternalAuth, name: string): boolean {
  const word = name.replace(/[^a-z0-9]/g, '-');
  if (NEVER_ASKED.has(word) || OF_CONNECTIONS.has(word) || word.startsWith('x-headgate-')) return false;
  return named === undefined || named.includes(name) || name === 'authorization';
}
