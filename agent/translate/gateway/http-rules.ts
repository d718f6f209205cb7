// The rules of an HTTPRoute as entries of the model. A rule that asks for something that the agent cannot do answers 500: without
// its filters its requests would get what its author did not mean. Pure.

import { Expressions, literalStart } from '../../base/expression/expression.ts';
import { pathPattern } from '../../base/one-spelling.ts';
import { quote } from '../../base/quote.ts';
import type {
  ExternalAuthFilter,
  HttpBackend,
  HttpMatch,
  HttpRoute,
  HttpRule,
  RedirectFilter,
  RouteFilter,
  RouteTimeouts,
} from '../../kubernetes/gateway/route-objects.ts';
import { answeringRule, CLOSED } from '../../model/answering-rule.ts';
import type { RefusalReason } from '../../model/object-status.ts';
import type {
  Cors,
  ExternalAuth,
  ForwardAction,
  HeaderChanges,
  PathRewrite,
  RedirectAction,
  RouteEntry,
  RouteMatch,
  RouteRule,
  ValueMatch,
} from '../../model/routes.ts';
import { askedProfile, HTTP_PROFILE, withPersistence, withRetry } from '../pool/pool-profile.ts';
import { limitsOf, type RouteAnnotations, type RouteOptions, withHsts } from '../routes/route-annotations.ts';
import { tokensOf } from '../routes/route-tokens.ts';
import { authOf } from '../routes/route-users.ts';
import type { BackendReader } from './backends.ts';

/** The place at which clients reach the route: a redirect without a port keeps it. */
export interface ClientSide {
  readonly scheme: 'http' | 'https';
  readonly port: number;
}

/** What a route's rules give. */
export interface RuleEntries {
  readonly entries: readonly RouteEntry[];
  /** By the index of the rule: why it cannot be carried out. */
  readonly faults: ReadonlyMap<number, RefusalReason>;
}

export function httpEntries(
  route: HttpRoute,
  { options, isClosed }: RouteAnnotations,
  client: ClientSide,
  backends: BackendReader,
): RuleEntries {
  const faults = new Map<number, RefusalReason>();
  const { auth } = authOf(options, route.namespace);
  const { jwt } = tokensOf(options, route.namespace);
  const expressions = new Expressions();
  const entries = route.rules.flatMap((rule, index) => {
    const fault = ruleFault(rule, expressions);
    if (fault !== undefined) faults.set(index, fault);
    const built = isClosed
      ? closedRule(route, index)
      : fault === undefined
        ? {
            ...httpRule(route, index, rule, options, client, backends),
            ...(auth && { auth }),
            ...(jwt && { jwt }),
          }
        : refusedRule(route, index);
    const matches = rule.matches.map(matchOf);
    return matches.map((match) => ({
      match: fault === undefined ? match : readable(match, expressions),
      rule: built,
    }));
  });
  return { entries, faults };
}

export function hasRedirect({ rules }: HttpRoute): boolean {
  return rules.some(({ filters }) => filters.some(({ kind }) => kind === 'redirect'));
}

/** Also of GRPCRoutes. */
export function refusedRule(
  { kind, key }: { readonly kind: string; readonly key: string },
  index: number,
): RouteRule {
  return answeringRule(ruleNames(kind, key, index), 500);
}

/** Also of GRPCRoutes: what protects the route cannot be given. */
export function closedRule(
  { kind, key }: { readonly kind: string; readonly key: string },
  index: number,
): RouteRule {
  return answeringRule(ruleNames(kind, key, index), CLOSED.status);
}

export function ruleNames(kind: string, key: string, index: number): Pick<RouteRule, 'name' | 'route'> {
  return { name: `${kind} ${key}#${index}`, route: `${kind} ${key}` };
}

export const NO_CHANGES = { cors: undefined, responseHeaders: undefined, limits: undefined } as const;

function httpRule(
  { kind, key }: HttpRoute,
  index: number,
  rule: HttpRule,
  options: RouteOptions,
  client: ClientSide,
  backends: BackendReader,
): RouteRule {
  const { filters, timeouts } = rule;
  const redirect = only(filters, 'redirect')?.redirect;
  const rewrite = only(filters, 'rewrite')?.rewrite;
  const action =
    redirect === undefined
      ? {
          ...forwardTo(rule, backends, profileOf(rule)),
          failure: 500 as const,
          rewrite: rewrite && { hostname: rewrite.hostname, path: pathRewrite(rewrite.path) },
          timeout: timeoutOf(timeouts),
        }
      : redirectAction(redirect, client);
  const externalAuth = externalAuthOf(only(filters, 'externalAuth')?.auth, backends);
  return {
    ...ruleNames(kind, key, index),
    action: externalAuth?.pool === '' ? UNASKED : action,
    ...(externalAuth && { externalAuth }),
    cors: corsOf(only(filters, 'cors')),
    responseHeaders: withHsts(options, only(filters, 'responseHeaders')?.changes),
    limits: limitsOf(options),
  };
}

/** The service does not exist, or may not be asked. */
const UNASKED = { kind: 'answer', status: 503 } as const;

function externalAuthOf(
  filter: ExternalAuthFilter | undefined,
  backends: BackendReader,
): ExternalAuth | undefined {
  if (filter === undefined) return undefined;
  const { backend, path, allowedHeaders, allowedResponseHeaders } = filter;
  return {
    pool: backends.pool(backend, askedProfile(HTTP_PROFILE)) ?? '',
    method: 'of-request',
    host: '',
    path: withoutSlash(path),
    isPrefix: true,
    letsIn: '200',
    requestHeaders: allowedHeaders.map((name) => name.toLowerCase()),
    responseHeaders: allowedResponseHeaders.length === 0 ? undefined : allowedResponseHeaders,
    refusal: { signIn: '', redirect: '', passesRedirects: true, alwaysSetsCookies: true },
  };
}

function profileOf({ sessionPersistence, retry }: HttpRule): string {
  const attempts = retry?.attempts || RETRIES;
  const profile = retry ? withRetry({ attempts, codes: retry.codes }, HTTP_PROFILE) : HTTP_PROFILE;
  return sessionPersistence ? withPersistence(profile) : profile;
}

/** If the rule does not say how often. */
const RETRIES = 1;
/** What HAProxy 2.6 can retry. */
const RETRY_CODES = [401, 403, 404, 408, 425, 500, 501, 502, 503, 504];

type Forwarding = Pick<ForwardAction, 'kind' | 'backends' | 'requestHeaders' | 'mirrors'>;

/** Also of GRPCRoutes. */
export function forwardTo(
  rule: { readonly filters: readonly RouteFilter[]; readonly backends: readonly HttpBackend[] },
  reader: BackendReader,
  profile: string,
): Forwarding {
  return {
    kind: 'forward',
    backends: rule.backends.map((backend) => ({
      pool: reader.pool(backend, profile),
      weight: backend.weight,
      requestHeaders: only(backend.filters, 'requestHeaders')?.changes,
      responseHeaders: only(backend.filters, 'responseHeaders')?.changes,
    })),
    requestHeaders: only(rule.filters, 'requestHeaders')?.changes,
    mirrors: rule.filters.flatMap((filter) => {
      if (filter.kind !== 'mirror') return [];
      const { backend, numerator, denominator } = filter.mirror;
      const pool = reader.pool(backend, profile);
      return pool === undefined ? [] : [{ pool, numerator, denominator }];
    }),
  };
}

export function headerChanges(filters: readonly RouteFilter[]): HeaderChanges | undefined {
  return only(filters, 'responseHeaders')?.changes;
}

function only<K extends RouteFilter['kind']>(
  filters: readonly RouteFilter[],
  kind: K,
): Extract<RouteFilter, { kind: K }> | undefined {
  return filters.find((filter): filter is Extract<RouteFilter, { kind: K }> => filter.kind === kind);
}

const WELL_KNOWN = { http: 80, https: 443 } as const;

/** With a scheme its well-known port, without one that of the listener; the location does not name a well-known port. */
function redirectAction(
  { scheme, hostname, port, path, statusCode }: RedirectFilter,
  client: ClientSide,
): RedirectAction {
  const wanted = port || (scheme === '' ? client.port : WELL_KNOWN[scheme]);
  const isWellKnown = wanted === WELL_KNOWN[scheme || client.scheme];
  return {
    kind: 'redirect',
    status: statusCode,
    scheme,
    hostname,
    port: isWellKnown ? 0 : wanted,
    path: pathRewrite(path),
  };
}

function pathRewrite(path: RedirectFilter['path']): PathRewrite | undefined {
  if (path === undefined) return undefined;
  if (path.type === 'ReplaceFullPath') return { kind: 'full', value: path.value };
  return { kind: 'prefix', value: withoutSlash(path.value) };
}

function withoutSlash(path: string): string {
  return path.endsWith('/') ? path.slice(0, -1) : path;
}

function corsOf(filter: Extract<RouteFilter, { kind: 'cors' }> | undefined): Cors | undefined {
  if (filter === undefined) return undefined;
  const { allowOrigins, allowMethods, allowHeaders, exposeHeaders, maxAge, allowCredentials } = filter.cors;
  return {
    origins: allowOrigins,
    methods: allowMethods,
    allowHeaders,
    exposeHeaders,
    maxAge,
    credentials: allowCredentials,
  };
}

/** Instead of no time-out: HAProxy would keep the connection to a member that has vanished forever. */
const UNLIMITED_MS = 24 * 3_600_000;

/** The shorter one, because one attempt is all that a request has; 0: the pool's. */
function timeoutOf({ request, backendRequest }: RouteTimeouts): number {
  const given = [request, backendRequest].filter((each) => each !== undefined);
  if (given.length === 0) return 0;
  const finite = given.filter((each) => each > 0);
  return finite.length === 0 ? UNLIMITED_MS : Math.min(...finite);
}

export function matchOf({ path, method, headers, query }: HttpMatch): RouteMatch {
  return {
    path: pathMatch(path),
    method,
    headers: headers.map((match) => valueMatch(match, match.name.toLowerCase())),
    query: query.map((match) => valueMatch(match, match.name)),
  };
}

function pathMatch({ type, value }: HttpMatch['path']): RouteMatch['path'] {
  if (type === 'PathPrefix') return { kind: 'prefix', value: withoutSlash(value) };
  return type === 'Exact' ? { kind: 'exact', value } : { kind: 'regex', value: pathPattern(value) };
}

export function valueMatch(
  { type, value }: { readonly type: 'Exact' | 'RegularExpression'; readonly value: string },
  name: string,
): ValueMatch {
  return { name, kind: type === 'Exact' ? 'exact' : 'regex', value };
}

/** The match of a refused rule, which answers all requests that an expression could be meant for that cannot be matched. */
export function readable(match: RouteMatch, expressions: Expressions): RouteMatch {
  const { path, headers, query } = match;
  const values = (some: readonly ValueMatch[]): readonly ValueMatch[] =>
    some.map((each) =>
      each.kind === 'regex' && typeof expressions.of(each.value, 'whole') === 'string'
        ? { ...each, value: '.*' }
        : each,
    );
  const isUnreadable = path.kind === 'regex' && typeof expressions.of(path.value, 'start') === 'string';
  return {
    ...match,
    path: isUnreadable ? { kind: 'regex', value: literalStart(path.value) } : path,
    headers: values(headers),
    query: values(query),
  };
}

/** Why a rule cannot be carried out; undefined if it can. */
function ruleFault(
  { filters, backends, matches, sessionPersistence, retry }: HttpRule,
  expressions: Expressions,
): RefusalReason | undefined {
  const code = retry?.codes.find((each) => !RETRY_CODES.includes(each));
  if (code !== undefined)
    return unsupported(`its retry has code ${code}; HAProxy can retry ${RETRY_CODES.join(', ')}`);
  if (retry !== undefined && retry.backoff > 0)
    return unsupported('its retry has a backoff, which HAProxy does not have; remove it');
  if (sessionPersistence?.type === 'Header' || sessionPersistence?.lifetime === 'Permanent')
    return unsupported(
      'its sessionPersistence is not by a cookie for a session, which is all that Headgate has',
    );
  const asking = filters.filter((each) => each.kind === 'externalAuth');
  if (asking.length > 1) return unsupported('it has several filters of type ExternalAuth');
  const auth = asking[0]?.auth;
  if (auth?.protocol === 'GRPC') return unsupported('its ExternalAuth has protocol GRPC; Headgate has HTTP');
  if (auth !== undefined && auth.bodyBytes > 0)
    return unsupported('its ExternalAuth wants bodies (forwardBody), which Headgate does not send');
  const redirect = only(filters, 'redirect');
  const rewrite = only(filters, 'rewrite');
  if (redirect !== undefined && rewrite !== undefined)
    return { reason: 'IncompatibleFilters', message: 'it has both RequestRedirect and URLRewrite' };
  if (redirect !== undefined && backends.length > 0)
    return { reason: 'IncompatibleFilters', message: 'it has both RequestRedirect and backendRefs' };
  const path = redirect?.redirect.path ?? rewrite?.rewrite.path;
  const isPrefix = matches.every((match) => match.path.type === 'PathPrefix');
  if (path?.type === 'ReplacePrefixMatch' && !isPrefix)
    return unsupported('ReplacePrefixMatch needs matches of type PathPrefix');
  return filterFault(filters, backends) ?? expressionFault(matches.map(matchOf), expressions);
}

export function unsupported(message: string): RefusalReason {
  return { reason: 'UnsupportedValue', message };
}

/** Also of GRPCRoutes. */
export function filterFault(
  filters: readonly RouteFilter[],
  backends: readonly HttpBackend[],
): RefusalReason | undefined {
  const unknown = only(filters, 'unknown');
  if (unknown !== undefined)
    return unsupported(`it has a filter of type ${quote(unknown.type)}, which Headgate does not have`);
  for (const { name, filters: ofBackend } of backends)
    for (const { kind } of ofBackend)
      if (kind !== 'requestHeaders' && kind !== 'responseHeaders')
        return unsupported(
          `backend ${quote(name)} has a filter that Headgate has only for whole rules; RequestHeaderModifier and ResponseHeaderModifier are allowed`,
        );
  return undefined;
}

/** Also of GRPCRoutes. */
export function expressionFault(
  matches: readonly RouteMatch[],
  expressions: Expressions,
): RefusalReason | undefined {
  for (const { path, headers, query } of matches)
    for (const [{ kind, value }, anchoring] of [
      [path, 'start'] as const,
      ...[...headers, ...query].map((each) => [each, 'whole'] as const),
    ]) {
      const expression = kind === 'regex' ? expressions.of(value, anchoring) : undefined;
      if (typeof expression === 'string') return unsupported(`${quote(value)} ${expression}`);
    }
  return undefined;
}
