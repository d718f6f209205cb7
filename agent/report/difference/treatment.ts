// One way in which a state treats requests, as a value that can be compared with that of another state. Pure.

import type { RouteRule, WeightedBackend } from '../../model/routes.ts';
import { accessOf } from '../answers/access/access.ts';
import type { RequestWay, Way } from '../answers/access/check.ts';
import { ANY_CLIENT } from '../answers/access/client.ts';
import { actionInWords } from '../answers/route-words.ts';
import { guardsOf } from './guards.ts';

/** One value for all requests that are treated alike. */
export interface Treatment {
  /** `HTTPRoute default/api#0`, or the object of the load balancer if it has no rules; '' for none. */
  readonly rule: string;
  /** `default/web port 80`, with its share if there are several; '' for none. */
  readonly backends: string;
  /** What a client gets that is not sent to a backend, in words; '' if it is. */
  readonly answer: string;
  /** What happens besides: rewriting, headers, time limits, mirrors. For comparison only. */
  readonly handling: string;
  /** To whom it is open; undefined if nothing listens. */
  readonly way: Omit<Way, 'client'> | undefined;
  /** Everything that decides about it. For comparison only. */
  readonly guards: string;
  /** If only HAProxy can tell which rule takes the requests: each rule, in their order. */
  readonly each?: readonly PerhapsTreated[];
}

export interface PerhapsTreated {
  /** What a request has that it takes; '' for any. */
  readonly words: string;
  readonly treatment: Treatment;
}

export const NO_MEMBER = 'answers 503: no member takes requests';

/** As if its backends were there, which may come without any change of what protects them. */
export function withBackends(way: Omit<Way, 'client'>): Omit<Way, 'client'> {
  const { request } = way;
  const action = request?.rule?.action;
  if (request?.rule === undefined || action?.kind !== 'forward') return way;
  const backends = action.backends.map((each) => ({ ...each, pool: each.pool ?? NOT_THERE }));
  return { ...way, request: { ...request, rule: { ...request.rule, action: { ...action, backends } } } };
}

const NOT_THERE = 'pool:';

export function answerOf(rule: RouteRule, pools: RequestWay['pools']): string {
  const { action } = rule;
  if (action.kind !== 'forward') return actionInWords(rule);
  // Its own members are not looked at.
  if (action.fallback !== undefined) return '';
  const known = pools.filter(({ name, weight }) => name !== '' && weight > 0);
  if (known.length === 0) return `answers ${action.failure}: it has no backend with a weight`;
  return known.every(({ ready }) => ready === 0) ? NO_MEMBER : '';
}

/** `default/web port 80`, `9/10 default/web port 80, 1/10 default/canary port 80`. */
export function sharesOf(pools: RequestWay['pools']): string {
  const used = pools.filter(({ weight }) => weight > 0);
  const [only] = used;
  if (only !== undefined && used.length === 1) return nameOf(only);
  const common = used.map(({ weight }) => weight).reduce(greatestDivisor, 0) || 1;
  const total = used.reduce((sum, { weight }) => sum + weight, 0) / common;
  return used
    .map((pool) => `${pool.weight / common}/${total} ${nameOf(pool)}`)
    .sort()
    .join(', ');
}

function nameOf({ name }: RequestWay['pools'][number]): string {
  return name === '' ? 'a backend that does not exist' : name.replace(/^pool:/, '');
}

function greatestDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestDivisor(b, a % b);
}

/**
 * What happens besides, by its name in words: its values as JSON, in their order. `pools`: what members of its backends get.
 * `wrongCertificate`: what clients with one get; '' if none is wrong.
 */
export function handlingOf(
  rule: RouteRule | undefined,
  pools: Readonly<Record<string, unknown>>,
  wrongCertificate: string,
): string {
  if (rule === undefined) return '';
  // What says who may come in is compared as such.
  const {
    name: _name,
    route: _route,
    action,
    limits: _limits,
    certificateName: _certificateName,
    jwt,
    auth,
    externalAuth,
    ...others
  } = rule;
  const backends = action.kind === 'forward' ? action.backends : [];
  const fields: Readonly<Record<string, unknown>> = {
    ...others,
    ...action,
    // What a request without a backend gets is its answer.
    ...{ kind: undefined, failure: undefined },
    backends: headersOf(backends),
    removesPassword: auth?.removesHeader,
    realm: auth?.realm,
    claimsForMembers: jwt?.headers,
    removesToken: jwt?.isRemoved,
    asked: externalAuth?.requestHeaders,
    taken: externalAuth?.responseHeaders,
    refusal: externalAuth?.refusal,
    members: Object.keys(pools).length > 0 ? pools : undefined,
    wrongCertificate: wrongCertificate || undefined,
  };
  return JSON.stringify(
    Object.fromEntries(Object.entries(fields).map(([key, value]) => [wordsFor(key), value])),
  );
}

/** Names of fields in words; another name is its own. */
const WORDS: Readonly<Record<string, string>> = {
  cors: 'CORS',
  responseHeaders: 'response headers',
  requestHeaders: 'request headers',
  backends: 'headers of its backends',
  rewrite: 'rewriting',
  passesCertificate: 'the certificate of clients for members',
  hashBy: 'the choice of a member',
  fallback: 'the default backend',
  customErrors: 'pages of errors',
  retriesIdempotentOnly: 'which methods are sent again',
  cookie: 'the cookie of session affinity',
  timeout: 'the time limit',
  removesPassword: 'members do not get the password',
  claimsForMembers: 'claims for members',
  removesToken: 'members do not get the token',
  asked: 'headers for the authorization server',
  taken: 'headers of the authorization server for members',
  refusal: 'what clients get that the authorization server refuses',
  members: 'connections to members',
  wrongCertificate: 'what clients get whose certificate is refused',
};

function wordsFor(field: string): string {
  return WORDS[field] ?? field;
}

/** What is done with the headers of each backend's share. */
function headersOf(backends: readonly WeightedBackend[]): readonly unknown[] {
  return backends
    .filter(
      ({ requestHeaders, responseHeaders }) => requestHeaders !== undefined || responseHeaders !== undefined,
    )
    .map(({ pool, requestHeaders, responseHeaders }) => [pool, requestHeaders, responseHeaders]);
}

/** What does not say who may come in. */
const NO_GUARDS: ReadonlySet<string> = new Set([
  'route',
  'members',
  'answer',
  'redirect',
  'share of namespace',
]);

/** All that decides who may come in, for comparison only. */
export function guardsInText(way: Omit<Way, 'client'>): string {
  const { checks } = accessOf({ ...way, client: ANY_CLIENT });
  const { allowedCidrs, tls } = way.listener;
  const { allowedCidrs: ofRoute, deniedCidrs } = way.request?.rule?.limits ?? {};
  const { demands, limits, allowances } = guardsOf(way);
  return JSON.stringify([
    checks.filter(({ name }) => !NO_GUARDS.has(name)),
    // Words name the first ranges only.
    [allowedCidrs, ofRoute, deniedCidrs, way.request?.pools.map(({ clients }) => clients)],
    [tls?.clients, tls?.sections?.map(({ hostname, clients }) => [hostname, clients])],
    [...demands, ...limits, ...allowances],
  ]);
}

/** One treatment out of those of several rules, of which only HAProxy can tell which takes the request. */
export function joined(own: Treatment, others: readonly PerhapsTreated[]): Treatment {
  const all = (part: (treatment: Treatment) => string): string =>
    [...others.map(({ words, treatment }) => `${part(treatment)} (${words})`), part(own)].join(', or ');
  return {
    rule: all(({ rule }) => rule),
    backends: all(({ backends }) => backends),
    answer: all(({ answer }) => answer),
    handling: all(({ handling }) => handling),
    way: own.way,
    guards: all(({ guards }) => guards),
    each: [...others, { words: '', treatment: own }],
  };
}
