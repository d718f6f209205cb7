// What a way demands of its clients and how much it lets them have, as values by which a change can be told to open or to close. Pure.

import type { Listener } from '../../model/load-balancer.ts';
import type { Cors, RouteJwt, RouteLimits, RouteRule } from '../../model/routes.ts';
import { askedOf } from '../answers/access/certificate-checks.ts';
import type { Way } from '../answers/access/check.ts';

export interface Guards {
  /** Key: the demand in words; value: all that decides whether a client has it. */
  readonly demands: ReadonlyMap<string, string>;
  /** Key: the limit in words; a limit without an entry is none. */
  readonly limits: ReadonlyMap<string, number>;
  /** What some clients may do besides. */
  readonly allowances: ReadonlySet<string>;
}

export function guardsOf(way: Omit<Way, 'client'>): Guards {
  const { listener, request } = way;
  const rule = request?.rule;
  return {
    demands: new Map([
      ...demandsOfTls(way),
      ...demandsOnMembers(way),
      ...(rule === undefined ? [] : demandsOfRule(listener, rule)),
    ]),
    limits: new Map([
      ...limitsOf(listener, rule?.limits).filter(([, most]) => most > 0),
      ...limitsOfChains(way),
    ]),
    allowances: new Set([
      ...(listener.trustedProxies ?? []).map((cidr) => `trusted proxy ${cidr}`),
      ...(listener.acceptProxy ? ['addresses in headers of the PROXY protocol'] : []),
      ...sitesOf(rule?.cors),
      ...keptAnswers(rule),
    ]),
  };
}

/** Something that `old` demands or limits, `now` does not, or otherwise; or `now` allows something besides. */
export function opens(old: Guards, now: Guards): boolean {
  return lost(old, now).length > 0 || gained(old, now).length > 0;
}

/** What differs, in words: what is only in the first, or otherwise there. */
export function inWords(own: Guards, other: Guards): readonly string[] {
  return [
    ...[...own.demands].filter(([name, value]) => other.demands.get(name) !== value).map(([name]) => name),
    ...[...own.limits]
      .filter(([name, most]) => other.limits.get(name) !== most)
      .map(([name, most]) => `at most ${most} ${name}`),
    ...[...own.allowances].filter((each) => !other.allowances.has(each)).map((each) => `allows ${each}`),
  ];
}

function lost(old: Guards, now: Guards): readonly string[] {
  return [
    ...[...old.demands].filter(([name, value]) => now.demands.get(name) !== value).map(([name]) => name),
    ...[...old.limits]
      .filter(([name, most]) => (now.limits.get(name) ?? Number.POSITIVE_INFINITY) > most)
      .map(([name]) => name),
  ];
}

function gained({ allowances }: Guards, now: Guards): readonly string[] {
  return [...now.allowances].filter((each) => !allowances.has(each));
}

type Entry = readonly [name: string, value: string];

function demandsOfTls(way: Omit<Way, 'client'>): readonly Entry[] {
  const { listener, isPassedOn } = way;
  const { tls } = listener;
  if (tls === undefined) return isPassedOn === true ? [['TLS', '']] : [];
  const clients = askedOf(way);
  const isRequired = clients?.verify === 'required';
  return [
    ['TLS', ''],
    ...(tls.minVersion === '1.3' ? [['TLS 1.3', ''] as const] : []),
    ...(tls.ciphers.length > 0 ? [['ciphers', JSON.stringify(tls.ciphers)] as const] : []),
    ...(isRequired
      ? [[`a certificate of ${clients.authority.name}`, clients.authority.fingerprint] as const]
      : []),
    ...(isRequired && clients.crl !== undefined
      ? [[`a certificate that is not in ${clients.crl.name}`, clients.crl.fingerprint] as const]
      : []),
  ];
}

/** By these nothing between here and the members reads or answers requests. */
function demandsOnMembers({ listener, request, isPassedOn }: Omit<Way, 'client'>): readonly Entry[] {
  const routed = request?.pools.filter(({ weight }) => weight > 0) ?? [];
  const pools = listener.routing === undefined ? [listener.pool] : routed;
  if (isPassedOn === true) return [['TLS to members', '']];
  if (pools.length === 0 || pools.some(({ tls }) => tls === undefined)) return [];
  const authorities = pools.map(({ tls }) => tls?.authority);
  const isVerified = !authorities.includes(undefined);
  const texts = authorities.map((each) => `${each?.fingerprint} ${each?.depth}`);
  return [
    ['TLS to members', ''],
    ...(isVerified ? [['verified certificates of members', [...new Set(texts)].sort().join()] as const] : []),
  ];
}

function demandsOfRule(listener: Listener, rule: RouteRule): readonly Entry[] {
  const { certificateName, auth, jwt, externalAuth } = rule;
  const demands: Entry[] = [];
  if (certificateName !== undefined) demands.push(['a name in the certificate', certificateName]);
  if (auth !== undefined) {
    const list = listener.userLists?.find(({ name }) => name === `secret ${auth.secret}`);
    demands.push([`a password of Secret ${auth.secret}`, list?.fingerprint ?? '']);
    if (auth.removesHeader) demands.push(['a password that members do not get', '']);
  }
  if (jwt !== undefined) demands.push(...demandsOfToken(listener, jwt));
  if (externalAuth !== undefined) {
    const { pool, method, host, path, isPrefix, letsIn } = externalAuth;
    demands.push(['an authorization server', JSON.stringify([pool, method, host, path, isPrefix, letsIn])]);
    for (const name of externalAuth.responseHeaders ?? ['each header'])
      demands.push([`${name} from the authorization server only`, '']);
  }
  return demands;
}

function demandsOfToken(
  { tokenKeys = [] }: Listener,
  { keys, required, headers, isRemoved, ...others }: RouteJwt,
): readonly Entry[] {
  const set = tokenKeys.find(({ name }) => name === keys);
  const ofKeys = set?.keys.map(({ kid, algorithm, id }) => [kid, algorithm, id]);
  const { issuer, audiences, from, leeway } = others;
  return [
    [`a token of ${issuer}`, JSON.stringify([keys, set?.fingerprint, ofKeys, from, leeway])],
    ...(audiences.length > 0 ? [['an audience of the token', JSON.stringify(audiences)] as const] : []),
    ...headers.map(({ name, claim }) => [`${name} from the token only`, claim] as const),
    ...(isRemoved === true ? [['a token that members do not get', ''] as const] : []),
    ...required.map(({ claim, values }) => [`the claim ${claim}`, JSON.stringify(values)] as const),
  ];
}

function limitsOf(
  { connectionLimit, rateLimit }: Listener,
  limits: RouteLimits | undefined,
): readonly (readonly [name: string, most: number])[] {
  return [
    ['connections at once', connectionLimit],
    ['new connections a second from one address', rateLimit],
    ['requests a second from one address', limits?.requestRate ?? 0],
    ['requests a minute from one address', limits?.minuteRate ?? 0],
    ['requests at once from one address', limits?.requestsAtOnce ?? 0],
    ['bytes of a body', limits?.bodyBytes ?? 0],
  ];
}

/** None of them is a limit, too. */
function limitsOfChains(way: Omit<Way, 'client'>): readonly (readonly [name: string, most: number])[] {
  const depth = askedOf(way)?.authority.depth;
  return depth === undefined ? [] : [['intermediate certificates of a client', depth]];
}

/** Other sites, to whose pages a browser shows answers. */
function sitesOf(cors: Cors | undefined): readonly string[] {
  if (cors === undefined) return [];
  const { origins, oneLabel, methods, allowHeaders, exposeHeaders, credentials } = cors;
  return [
    ...origins.map(
      (origin) => `pages of ${origin}${oneLabel && origin.includes('*.') ? ' (one label)' : ''}`,
    ),
    ...methods.map((method) => `${method} of other sites`),
    ...[...allowHeaders, ...exposeHeaders].map((name) => `the header ${name} of other sites`),
    ...(credentials ? ['credentials of other sites'] : []),
  ];
}

function keptAnswers(rule: RouteRule | undefined): readonly string[] {
  const cache = rule?.externalAuth?.cache;
  return cache === undefined
    ? []
    : [`answers of the authorization server that count on ${JSON.stringify(cache)}`];
}
