// Whom a listener, or a rule of it, is open to: every check between a client and the members in HAProxy's order, which a test
// compares with the rendered configuration. Pure.

import { common } from '../../../base/address-set.ts';
import { quote } from '../../../base/quote.ts';
import { externalAuth } from './authorization-check.ts';
import { certificateName, clientCertificate, hostCertificate } from './certificate-checks.ts';
import type { Check, CheckResult, Way } from './check.ts';
import type { Client } from './client.ts';
import {
  connectionLimit,
  connectionRate,
  handshake,
  namespaceShare,
  sourceRanges,
} from './connection-checks.ts';
import { preflight } from './origin-check.ts';
import { admittedBy } from './ranges.ts';
import {
  ambiguousPath,
  body,
  fixedAnswer,
  members,
  path,
  poolClients,
  rangesOfRoute,
  redirect,
  requestHost,
  requestRate,
  rewrittenPath,
  route,
  routeRanges,
} from './request-checks.ts';
import { token } from './token-check.ts';
import { user } from './user-check.ts';

export interface Access {
  /** For the client, as far as it is known. `asks`: open to a client with what is not known of it. */
  readonly verdict: 'open' | 'asks' | 'redirected' | 'answered' | 'refused';
  /** What a client gets that has no more than what is known of it; '' if it is let in. */
  readonly answer: string;
  /** `Open to everybody`. */
  readonly sentence: string;
  /** In the order of HAProxy. */
  readonly checks: readonly (CheckResult & { readonly name: string })[];
}

const ARRIVAL: readonly Check[] = [
  { name: 'connection limit', of: connectionLimit },
  { name: 'share of namespace', of: namespaceShare },
];
const SOURCE: readonly Check[] = [
  { name: 'source ranges', of: sourceRanges },
  { name: 'connection rate', of: connectionRate },
];
const TLS: readonly Check[] = [
  { name: 'handshake', of: handshake },
  { name: 'client certificate', of: clientCertificate },
];
const REQUEST: readonly Check[] = [
  { name: 'path', of: path },
  { name: 'host', of: requestHost },
  { name: 'certificate of host', of: hostCertificate },
  { name: 'ambiguous path', of: ambiguousPath },
  { name: 'route', of: route },
  { name: 'source ranges of route', of: routeRanges },
  { name: 'name in certificate', of: certificateName },
  { name: 'request rate', of: requestRate },
  { name: 'body', of: body },
  { name: 'rewritten path', of: rewrittenPath },
  { name: 'preflight', of: preflight },
  { name: 'user', of: user },
  { name: 'token', of: token },
  { name: 'authorization', of: externalAuth },
  { name: 'redirect', of: redirect },
  { name: 'answer', of: fixedAnswer },
  { name: 'clients of members', of: poolClients },
  { name: 'members', of: members },
];

/** In the order of HAProxy: with the PROXY protocol it has the client's address only after the handshake. */
export function checksOf({
  acceptProxy,
  dispatch,
}: Pick<Way['listener'], 'acceptProxy' | 'dispatch'>): readonly Check[] {
  const isLate = acceptProxy || dispatch !== undefined;
  return [...ARRIVAL, ...(isLate ? [...TLS, ...SOURCE] : [...SOURCE, ...TLS]), ...REQUEST];
}

const ENDS: readonly CheckResult['result'][] = ['refused', 'redirected', 'answered'];

export function accessOf(way: Way): Access {
  const checks: (CheckResult & { readonly name: string })[] = [];
  let isOver = false;
  for (const { name, of } of checksOf(way.listener)) {
    const found = of(way);
    if (found === undefined) continue;
    checks.push({ name, ...found, ...(isOver && { result: 'not reached' }) });
    isOver ||= ENDS.includes(found.result);
  }
  const end = checks.find(({ result }) => ENDS.includes(result));
  const asked = checks.filter(({ result }) => result === 'asked');
  const isClosed = end?.result === 'refused' || (asked.length > 0 && letsNoAddressIn(way));
  const verdict = isClosed
    ? 'refused'
    : asked.length > 0
      ? 'asks'
      : end === undefined
        ? 'open'
        : end.result === 'answered'
          ? 'answered'
          : 'redirected';
  const answer = checks.find(({ result }) => result === 'asked' || ENDS.includes(result))?.answer ?? '';
  const sentence = sentenceOf(verdict, way.client, asked, end);
  return { verdict, answer, sentence, checks };
}

/** No address is in the ranges of the listener and in those of the route. */
function letsNoAddressIn({ listener, client, request }: Way): boolean {
  const { allowedCidrs: allowed, family, trustedProxies = [] } = listener;
  const ofRoute = rangesOfRoute(request);
  if (client.from !== undefined || ofRoute === undefined || trustedProxies.length > 0) return false;
  return common(admittedBy({ allowed, denied: [] }, family), admittedBy(ofRoute, family)).length === 0;
}

function sentenceOf(
  verdict: Access['verdict'],
  client: Client,
  asked: Access['checks'],
  end: Access['checks'][number] | undefined,
): string {
  const who = clientInWords(client);
  const why = end === undefined ? 'no address is in both source ranges' : `${end.name}, ${end.answer}`;
  switch (verdict) {
    case 'open':
      return `Open to ${who || 'everybody'}`;
    case 'answered':
      return `HAProxy answers ${who || 'everybody'} itself (${why})`;
    case 'redirected':
      return `Redirects ${who || 'everybody'} (${why})`;
    case 'refused':
      return `Closed to ${who || 'everybody'} (${why})`;
    case 'asks': {
      const unknown = asked.find(({ name }) => name === 'route');
      if (unknown !== undefined) return `Not known: ${unknown.detail}`;
      const what = asked.map(({ detail }) => detail).join('; ');
      return who === '' ? `Open only to clients ${what}` : `Open to ${who} only ${what}`;
    }
  }
}

/** '' if nothing is known of it. */
function clientInWords({ from, user: name, hasCertificate, certificates, headers }: Client): string {
  const words: string[] = [];
  if (hasCertificate || certificates !== undefined) words.push('with such a certificate');
  if (name !== '') words.push(`with the password of ${quote(name)}`);
  if (headers !== undefined) words.push(`with ${headersInWords([...headers.keys()])}`);
  if (from !== undefined) return [from.address, ...words].join(', ');
  return words.length === 0 ? '' : `clients ${words.join(', ')}`;
}

function headersInWords(names: readonly string[]): string {
  return names.length === 1 ? `this header ${names.join(', ')}` : `these headers ${names.join(', ')}`;
}
