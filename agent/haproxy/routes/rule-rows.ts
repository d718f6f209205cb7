// What one rule does with a request, as a target and the rows that it leads to. A target is the name of a pool, `eSTATUS` for
// an answer, or `r:ID` for a rule with more to do. Ids are hashes of the content, so that a changed rule has other rows: a
// request sees all of the old rule, or all of the new one. Pure.

import { expressionOf } from '../../base/expression/expression.ts';
import { groupProgram } from '../../base/expression/groups.ts';
import { subjectExpression } from '../../base/expression/subject.ts';
import type {
  Cors,
  ForwardAction,
  Mirror,
  PathRewrite,
  RedirectAction,
  RouteAuth,
  RouteLimits,
  RouteRule,
  SessionCookie,
  WeightedBackend,
} from '../../model/routes.ts';
import {
  customErrorsText,
  digest,
  externalAuthText,
  headerChangesText,
  hostText,
  jwtText,
  locationText,
  nameText,
  pathText,
  token,
} from './encode.ts';
import { keySetId } from './key-set-id.ts';
import type { MapName, MapRow } from './maps.ts';
import { userListId } from './user-list-id.ts';

export interface Target {
  readonly kind: 'target';
  readonly target: string;
  /** The rows that the target needs, each after the rows that it leads to. */
  readonly rows: readonly MapRow[];
}

/** Among the changes of headers: the client's certificate. */
const CERTIFICATE = 'cssl-client-cert';

/** `table`: rows of different tables have different keys. `prefix`: the matched prefix, '' for none. */
export function ruleTarget(rule: RouteRule, table: string, prefix: string): Target {
  const features = featuresOf(rule, prefix);
  const { action } = rule;
  const end = endOf(action, table);
  if (features.size === 0 && end.kind === 'target') return end;
  const id = ruleId(table, JSON.stringify([...features, end.kind === 'target' ? end.target : end.content]));
  const rows: MapRow[] = end.kind === 'target' ? [...end.rows] : [...end.rowsOf(id)];
  for (const [map, value] of features) {
    if (map === 'origins')
      for (const origin of value.split(' '))
        rows.push({ map, key: `${id}|${origin}`, value: origin === '*' ? '*' : '1' });
    else if (map === 'certificate-name') {
      const expression = expressionOf(value, 'start');
      const key = `x:${digest(`${table} subject ${value}`, 24)}`;
      // Without the expression no client is let in.
      if (typeof expression !== 'string') rows.push({ map: 'expressions', key, value: expression.text });
      rows.push({ map, key: id, value: key });
    } else rows.push({ map, key: id, value });
  }
  if (end.kind === 'target' && end.target !== '') rows.push({ map: 'backend', key: id, value: end.target });
  return { kind: 'target', target: id, rows };
}

/** Where the request ends; a redirect has no target. */
function endOf(action: RouteRule['action'], table: string): Target | Shares {
  if (action.kind === 'forward') return sharesOf(action, table);
  return { kind: 'target', target: action.kind === 'answer' ? `e${action.status}` : '', rows: [] };
}

/** By weights alone, for connections. */
export function weightedTarget(backends: readonly WeightedBackend[], table: string): Target {
  const end = sharesOf({ backends, failure: 503 }, table);
  if (end.kind === 'target') return end;
  const id = ruleId(table, end.content);
  return { kind: 'target', target: id, rows: end.rowsOf(id) };
}

function ruleId(table: string, content: string): string {
  return `r:${digest(`${table} ${content}`, 24)}`;
}

/** What a rule does besides the choice of a pool: map → value. */
function featuresOf(
  { name, action, cors, responseHeaders, limits, certificateName, auth, jwt, externalAuth }: RouteRule,
  prefix: string,
): Map<MapName, string> {
  const features = new Map<MapName, string>();
  const put = (map: MapName, value: string): void => {
    if (value !== '') features.set(map, value);
  };
  if (action.kind === 'forward') {
    if (action.timeout > 0) put('timeout', String(action.timeout));
    put('path', pathChange(action.rewrite?.path, prefix));
    put('host', hostText(action.rewrite?.hostname ?? ''));
    const certificate = action.passesCertificate ? [CERTIFICATE] : [];
    const changes = [headerChangesText(action.requestHeaders), ...certificate].filter(Boolean);
    put('request-headers', changes.join('&'));
    if (action.retriesIdempotentOnly) put('retry', 'idempotent');
    put('hash-by', token(action.hashBy ?? '').replaceAll('%24', '$'));
    put('fallback', action.fallback ?? '');
    put('custom-errors', customErrorsText(action));
    put('cookie', cookieText(action.cookie));
    put('mirrors', action.mirrors.map(mirrorText).join('|'));
  }
  if (action.kind === 'redirect') {
    put('redirect', redirectText(action));
    put('path', pathChange(action.path, prefix));
  }
  if (cors !== undefined) {
    put('cors', corsText(cors));
    put('origins', cors.origins.map((origin) => originText(origin, cors.oneLabel === true)).join(' '));
  }
  put('response-headers', headerChangesText(responseHeaders));
  if (limits !== undefined) putLimits(limits, put);
  if (certificateName !== undefined) put('certificate-name', subjectExpression(certificateName));
  if (auth !== undefined) put('auth', authText(auth));
  if (jwt !== undefined) put('jwt', jwtText(jwt, keySetId(jwt.keys)));
  // A fixed answer needs no other one.
  if (externalAuth !== undefined && action.kind !== 'answer')
    put('external-auth', externalAuthText(externalAuth, name));
  return features;
}

/** `users|what becomes of the password|realm`. */
function authText({ secret, realm, removesHeader }: RouteAuth): string {
  const ofRealm = realm.replace(/[^A-Za-z0-9 ._-]/g, '');
  return `${userListId(secret)}|${removesHeader ? 'remove' : 'keep'}|${ofRealm}`;
}

/** `NAME|https|; Path=/; HttpOnly`. */
function cookieText(cookie: SessionCookie | undefined): string {
  if (cookie === undefined) return '';
  const { name, secure, attributes } = cookie;
  const texts = attributes.map((each) => `; ${each.replace(/[^A-Za-z0-9=/.:@!$&()*+~_-]/g, '')}`);
  return [name.replace(/[^A-Za-z0-9_-]/g, ''), secure, texts.join('')].join('|');
}

function mirrorText({ pool, numerator, denominator }: Mirror): string {
  return [pool, numerator, denominator].join(' ');
}

/** `=/full`, `~/base/$2 PROGRAM`, or the number of elements of the matched prefix and what replaces them. */
function pathChange(change: PathRewrite | undefined, prefix: string): string {
  if (change === undefined) return '';
  if (change.kind === 'full') return `=${pathText(change.value)}`;
  if (change.kind === 'groups') {
    const program = groupProgram(change.pattern ?? '', change.value);
    return `~${pathText(change.value)} ${typeof program === 'string' ? '' : program.join(' ')}`;
  }
  return `${prefix.split('/').length - 1}${pathText(change.value)}`;
}

/** `code|scheme://|host|:port`, or `code|location|URL`. */
function redirectText({ status, scheme, hostname, port, location }: RedirectAction): string {
  if (location !== undefined) return `${status}|location|${locationText(location)}`;
  const fields = [
    status,
    scheme === '' ? '' : `${scheme}://`,
    hostText(hostname),
    port === 0 ? '' : `:${port}`,
  ];
  return fields.join('|');
}

/** The target depends on the matched prefix. */
export function replacesPrefix({ action }: RouteRule): boolean {
  if (action.kind === 'forward') return action.rewrite?.path?.kind === 'prefix';
  return action.kind === 'redirect' && action.path?.kind === 'prefix';
}

/** `methods;headers;exposed headers;max age;credentials`. */
function corsText({ methods, allowHeaders, exposeHeaders, maxAge, credentials }: Cors): string {
  const lists = [methods, allowHeaders, exposeHeaders].map((list) =>
    list.map(nameText).filter(Boolean).join(', '),
  );
  return [...lists, maxAge, credentials ? 'true' : ''].join(';');
}

/** `*` for any; `https|*|example.org` for a wildcard of any number of labels, `https|+|example.org` for one of one label. */
function originText(origin: string, isOneLabel: boolean): string {
  const [, scheme, rest] = /^([a-z]+):\/\/\*\.(.+)$/.exec(origin) ?? [];
  return scheme === undefined
    ? pathText(origin)
    : `${scheme}|${isOneLabel ? '+' : '*'}|${pathText(rest ?? '')}`;
}

function putLimits(
  { allowedCidrs, deniedCidrs, requestRate, minuteRate = 0, requestsAtOnce = 0, bodyBytes }: RouteLimits,
  put: (map: MapName, value: string) => void,
): void {
  put(
    'clients',
    [...allowedCidrs.map((cidr) => `+${cidr}`), ...deniedCidrs.map((cidr) => `-${cidr}`)].join(' '),
  );
  if (requestRate > 0) put('rate', String(requestRate));
  if (minuteRate > 0) put('minute-rate', String(minuteRate));
  if (requestsAtOnce > 0) put('at-once', String(requestsAtOnce));
  if (bodyBytes > 0) put('body', String(bodyBytes));
}

/** Several targets by weight. */
interface Shares {
  readonly kind: 'shares';
  /** Equal texts have equal rows, apart from the id. */
  readonly content: string;
  rowsOf(id: string): readonly MapRow[];
}

/**
 * A share of requests for each backend: a random number below the sum of weights is looked up among ranges, each a few blocks
 * of IPv6 addresses, because HAProxy looks a block up in constant time.
 */
function sharesOf(
  { backends, failure }: Pick<ForwardAction, 'backends' | 'failure'>,
  table: string,
): Target | Shares {
  const used = backends.filter(({ weight }) => weight > 0);
  const targets = used.map((backend) => backendTarget(backend, failure, table));
  const [only, ...others] = targets;
  if (only === undefined) return { kind: 'target', target: `e${failure}`, rows: [] };
  if (others.every(({ target }) => target === only.target)) return only;
  const divisor = used.map(({ weight }) => weight).reduce(greatestCommonDivisor);
  const shares = used.map(({ weight }, at) => [targets[at]?.target ?? '', weight / divisor] as const);
  const content = JSON.stringify(shares);
  const rowsOf = (id: string): readonly MapRow[] => {
    const block = addressBlock(id);
    const rows: MapRow[] = targets.flatMap((each) => each.rows);
    let from = 0;
    for (const [value, share] of shares) {
      for (const cidr of cidrsOf(from, from + share))
        rows.push({ map: 'shares', key: `${block}${cidr}`, value });
      from += share;
    }
    rows.push({ map: 'weights', key: id, value: `${from}|${block}` });
    return rows;
  };
  return { kind: 'shares', content, rowsOf };
}

/** A backend with changes of its own is a rule of its own. */
function backendTarget(
  { pool, requestHeaders, responseHeaders }: WeightedBackend,
  failure: 500 | 503,
  table: string,
): Target {
  const target = pool ?? `e${failure}`;
  const [request, response] = [headerChangesText(requestHeaders), headerChangesText(responseHeaders)];
  if (request === '' && response === '') return { kind: 'target', target, rows: [] };
  const id = `s:${digest(JSON.stringify([table, target, request, response]), 24)}`;
  const rows: MapRow[] = [];
  if (request !== '') rows.push({ map: 'request-headers', key: id, value: request });
  if (response !== '') rows.push({ map: 'response-headers', key: id, value: response });
  rows.push({ map: 'backend', key: id, value: target });
  return { kind: 'target', target: id, rows };
}

/** A block of 2^64 addresses that belongs to one rule: a text to which an IPv4 address can be joined. */
function addressBlock(id: string): string {
  const digits = digest(id, 14);
  return `fd${digits.slice(0, 2)}:${digits.slice(2, 6)}:${digits.slice(6, 10)}:${digits.slice(10, 14)}::`;
}

/** The aligned blocks of the integers from `from` to before `to`: `0.0.0.64/122`. */
export function cidrsOf(from: number, to: number): readonly string[] {
  const cidrs: string[] = [];
  for (let at = from; at < to; ) {
    let bits = 0;
    while (bits < 31 && at % 2 ** (bits + 1) === 0 && at + 2 ** (bits + 1) <= to) bits++;
    const bytes = [24, 16, 8, 0].map((shift) => Math.floor(at / 2 ** shift) % 256);
    cidrs.push(`${bytes.join('.')}/${128 - bits}`);
    at += 2 ** bits;
  }
  return cidrs;
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
