// The schema of the filters of routes. A filter that the agent does not know is kept as such, because the route's status has to
// report it. Pure.

import { compactList } from '../../base/compact.ts';
import {
  boolean,
  isMapping,
  listOf,
  object,
  oneOf,
  Rule,
  textRule,
  type ValidationProblem,
  wholeNumber,
} from '../../base/validate.ts';
import {
  atMost,
  fieldValue,
  group,
  headerName,
  kind,
  maybePort,
  namespace,
  objectName,
  preciseHostname,
} from './names.ts';
import type { ExternalAuthFilter, HeaderFilter, PathModifier, RouteFilter } from './route-objects.ts';

const PATH = /^[-A-Za-z0-9/._~!$&'()*+,;=:@%]*$/;
const ORIGIN = /^(?:\*|https?:\/\/(?:(?:\*\.)?(?:[a-zA-Z0-9-]+\.)*[a-zA-Z0-9-]+|\*)(?::[0-9]{1,5})?)$/;
const TYPE = /^[A-Za-z][A-Za-z0-9]{0,62}$/;
const MAX_COUNT = 2 ** 31 - 1;

const header = object({ name: headerName(), value: fieldValue(4096) });

/** One change per name, as the API requires: the first one counts. */
const headerChanges = object({
  set: atMost(listOf(header), 16).or([]),
  add: atMost(listOf(header), 16).or([]),
  remove: atMost(listOf(headerName()), 16).or([]),
}).transform(({ set, add, remove }): HeaderFilter => {
  const seen = new Set<string>();
  const isFirst = (name: string) => !seen.has(name.toLowerCase()) && seen.add(name.toLowerCase()) === seen;
  return {
    set: compactList(set.filter(({ name }) => isFirst(name))),
    add: compactList(add.filter(({ name }) => isFirst(name))),
    remove: compactList(remove.filter(isFirst)),
  };
});

const replacement = textRule(
  (text) => text.length <= 1024 && PATH.test(text),
  'is not a path of at most 1024 characters that a URL may have',
);

const pathModifier = object({
  type: oneOf('ReplaceFullPath', 'ReplacePrefixMatch'),
  replaceFullPath: replacement.nullish(),
  replacePrefixMatch: replacement.nullish(),
}).transform(({ type, replaceFullPath, replacePrefixMatch }, refuse): PathModifier => {
  const value = type === 'ReplaceFullPath' ? replaceFullPath : replacePrefixMatch;
  const field = type === 'ReplaceFullPath' ? 'replaceFullPath' : 'replacePrefixMatch';
  if (value === undefined) refuse([field], `missing, type ${type} needs it`);
  return { type, value: value ?? '' };
});

const STATUS_CODES = [301, 302, 303, 307, 308] as const;
const statusCode = wholeNumber(301, 308).transform((code, refuse) => {
  const known = STATUS_CODES.find((each) => each === code);
  if (known === undefined) refuse([], `is not one of ${STATUS_CODES.join(', ')}`);
  return known ?? 302;
});

const redirect = object({
  scheme: oneOf('http', 'https').nullish(),
  hostname: preciseHostname(),
  path: pathModifier.nullish(),
  port: maybePort(),
  statusCode: statusCode.or(302),
}).transform(({ scheme, ...rest }) => ({ ...rest, scheme: scheme ?? ('' as const) }));

const rewrite = object({ hostname: preciseHostname(), path: pathModifier.nullish() });

const backendRef = object({
  group: group().or(''),
  kind: kind().or('Service'),
  namespace: namespace(),
  name: objectName(),
  port: maybePort(),
});

const mirror = object({
  backendRef,
  percent: wholeNumber(0, 100).nullish(),
  fraction: object({
    numerator: wholeNumber(0, MAX_COUNT),
    denominator: wholeNumber(1, MAX_COUNT).or(100),
  }).nullish(),
}).transform(({ backendRef: backend, percent, fraction }) => ({
  backend,
  ...(fraction ?? { numerator: percent ?? 100, denominator: 100 }),
}));

const METHODS = [
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'DELETE',
  'CONNECT',
  'OPTIONS',
  'TRACE',
  'PATCH',
  '*',
] as const;

const cors = object({
  allowOrigins: atMost(
    listOf(
      textRule(
        (text) => text.length <= 253 && ORIGIN.test(text),
        'is not an origin as in "https://example.org", or "*"',
      ),
    ),
    64,
  ).or([]),
  allowCredentials: boolean().or(false),
  allowMethods: atMost(listOf(oneOf(...METHODS)), METHODS.length).or([]),
  allowHeaders: atMost(listOf(headerName()), 64).or([]),
  exposeHeaders: atMost(listOf(headerName()), 64).or([]),
  maxAge: wholeNumber(1, MAX_COUNT).or(5),
});

/** Also without a slash at its beginning, as the API allows. */
const prefix = textRule(
  (text) => text.length <= 1024 && PATH.test(text) && !/\/\.{1,2}(?:\/|$)/.test(text),
  'is not a path of at most 1024 characters without "/./" and "/../"',
);
const headerNames = atMost(listOf(headerName()), 64).or([]);

const externalAuth = object({
  protocol: oneOf('HTTP', 'GRPC'),
  backendRef,
  http: object({
    path: prefix.or(''),
    allowedHeaders: headerNames,
    allowedResponseHeaders: headerNames,
  }).or({ path: '', allowedHeaders: [], allowedResponseHeaders: [] }),
  forwardBody: object({ maxSize: wholeNumber(0, 65_535).or(0) }).or({ maxSize: 0 }),
}).transform(
  ({ protocol, backendRef: backend, http, forwardBody }): ExternalAuthFilter => ({
    protocol,
    backend,
    path: http.path === '' || http.path.startsWith('/') ? http.path : `/${http.path}`,
    allowedHeaders: compactList(http.allowedHeaders),
    allowedResponseHeaders: compactList(http.allowedResponseHeaders),
    bodyBytes: forwardBody.maxSize,
  }),
);

type FilterRule = Rule<RouteFilter>;

/** By `type`: the field that has the filter's content, and its rule. */
const KNOWN: Readonly<Record<string, { readonly field: string; readonly rule: FilterRule }>> = {
  RequestHeaderModifier: {
    field: 'requestHeaderModifier',
    rule: headerChanges.transform((changes): RouteFilter => ({ kind: 'requestHeaders', changes })),
  },
  ResponseHeaderModifier: {
    field: 'responseHeaderModifier',
    rule: headerChanges.transform((changes): RouteFilter => ({ kind: 'responseHeaders', changes })),
  },
  RequestRedirect: {
    field: 'requestRedirect',
    rule: redirect.transform((each): RouteFilter => ({ kind: 'redirect', redirect: each })),
  },
  URLRewrite: {
    field: 'urlRewrite',
    rule: rewrite.transform((each): RouteFilter => ({ kind: 'rewrite', rewrite: each })),
  },
  RequestMirror: {
    field: 'requestMirror',
    rule: mirror.transform((each): RouteFilter => ({ kind: 'mirror', mirror: each })),
  },
  ExternalAuth: {
    field: 'externalAuth',
    rule: externalAuth.transform((auth): RouteFilter => ({ kind: 'externalAuth', auth })),
  },
  CORS: { field: 'cors', rule: cors.transform((each): RouteFilter => ({ kind: 'cors', cors: each })) },
};

const filterType = textRule((text) => TYPE.test(text), 'is not the type of a filter');

const filter = new Rule((value, faults: ValidationProblem[]): RouteFilter => {
  const { type } = object({ type: filterType }).read(value, faults);
  const known = Object.hasOwn(KNOWN, type ?? '') ? KNOWN[type] : undefined;
  if (known === undefined) return { kind: 'unknown', type };
  const { field, rule } = known;
  const content = object({ [field]: rule }).read(isMapping(value) ? value : {}, faults);
  return content[field] as RouteFilter;
});

export const filters = atMost(listOf(filter), 16).or([]);
