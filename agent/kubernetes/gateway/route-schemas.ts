// The schemas of routes, with the API's own rules and defaults, and the flat values that they give. Pure.

import { compactList } from '../../base/compact.ts';
import { listOf, object, oneOf, textRule, type Valid, wholeNumber } from '../../base/validate.ts';
import { annotations } from '../object-schemas.ts';
import { withoutKubectlCopy } from '../prune-object.ts';
import { filters } from './filter-schemas.ts';
import {
  atMost,
  duration,
  fieldValue,
  GATEWAY_GROUP,
  group,
  headerName,
  hostnames,
  identityOf,
  kind,
  maybePort,
  metadataFields,
  namespace,
  objectName,
  sectionName,
} from './names.ts';
import type {
  GrpcMatch,
  GrpcRoute,
  HttpMatch,
  HttpRoute,
  SessionPersistence,
  TcpRoute,
  TlsRoute,
  UdpRoute,
} from './route-objects.ts';

const MAX_RULES = 16;
const MAX_MATCHES = 64;
const MAX_BACKENDS = 16;
const MAX_HOSTNAMES = 16;
const MAX_TLS_HOSTNAMES = 1024;
const MAX_WEIGHT = 1_000_000;

/** One entry of `spec.parentRefs`. */
export const parentRef = object({
  group: group().or(GATEWAY_GROUP),
  kind: kind().or('Gateway'),
  namespace: namespace(),
  name: objectName(),
  sectionName: sectionName(),
  port: maybePort(),
});
export const MAX_PARENTS = 32;
const parentRefs = atMost(listOf(parentRef), MAX_PARENTS).or([]);

const backendShape = {
  group: group().or(''),
  kind: kind().or('Service'),
  namespace: namespace(),
  // As wide as the API has it: a backend that cannot be, or is of a kind with other names, costs its share, not the route.
  name: textRule((text) => /^[!-.0-~]{1,253}$/.test(text), 'is not a name of 1 to 253 characters'),
  port: maybePort(),
  weight: wholeNumber(0, MAX_WEIGHT).or(1),
};
const backends = atMost(listOf(object(backendShape)), MAX_BACKENDS).or([]);
const httpBackends = atMost(listOf(object({ ...backendShape, filters })), MAX_BACKENDS).or([]);

const PATH = /^\/(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})*$/;
/** Elements that a proxy may resolve, or a member may read otherwise than the proxy. */
const AMBIGUOUS = /\/\/|\/\.\.?(?:\/|$)|%2f/i;

const path = object({
  type: oneOf('Exact', 'PathPrefix', 'RegularExpression').or('PathPrefix'),
  value: fieldValue(1024).or('/'),
}).refine(({ type, value }, refuse) => {
  if (type === 'RegularExpression') return;
  if (!PATH.test(value) || AMBIGUOUS.test(value))
    refuse(['value'], 'is not a path that begins with "/", without "//", "/./", "/../" and "%2F"');
});

const matchType = oneOf('Exact', 'RegularExpression').or('Exact');
const headerMatches = atMost(
  listOf(object({ type: matchType, name: headerName(), value: fieldValue(4096) })),
  16,
).or([]);
const queryMatches = atMost(
  listOf(object({ type: matchType, name: headerName(), value: fieldValue(1024) })),
  16,
).or([]);

const ANY_PATH = { type: 'PathPrefix', value: '/' } as const;
const ANY_REQUEST: HttpMatch = { path: ANY_PATH, headers: [], query: [], method: '' };

const httpMatch = object({
  path: path.or(ANY_PATH),
  headers: headerMatches,
  queryParams: queryMatches,
  method: oneOf('GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH').nullish(),
}).transform(
  ({ path: wanted, headers, queryParams, method }): HttpMatch => ({
    path: wanted,
    headers: compactList(headers),
    query: compactList(queryParams),
    method: method ?? '',
  }),
);

const timeouts = object({ request: duration().nullish(), backendRequest: duration().nullish() });

const retry = object({
  codes: listOf(wholeNumber(400, 599)).or([]),
  attempts: wholeNumber(0, 1000).or(0),
  backoff: duration().or(0),
});

const COOKIE_NAME = /^[A-Za-z0-9!#$%&'*+\-.^_`|~]{1,128}$/;

const sessionPersistence = object({
  sessionName: textRule(
    (text) => text === '' || COOKIE_NAME.test(text),
    "is not a name of at most 128 letters, digits and !#$%&'*+-.^_`|~",
  ).or(''),
  type: oneOf('Cookie', 'Header').or('Cookie'),
  absoluteTimeout: duration().or(0),
  cookieConfig: object({ lifetimeType: oneOf('Session', 'Permanent').or('Session') }).or({
    lifetimeType: 'Session',
  }),
}).transform(
  ({ cookieConfig, ...rest }): SessionPersistence => ({ ...rest, lifetime: cookieConfig.lifetimeType }),
);

const httpRule = object({
  name: sectionName(),
  matches: atMost(listOf(httpMatch), MAX_MATCHES).or([]),
  filters,
  backendRefs: httpBackends,
  timeouts: timeouts.or({ request: undefined, backendRequest: undefined }),
  retry: retry.nullish(),
  sessionPersistence: sessionPersistence.nullish(),
});

const metadata = object({ ...metadataFields, annotations: annotations.nullish() });

export const httpRouteSchema = object({
  metadata,
  spec: object({
    parentRefs,
    hostnames: hostnames(MAX_HOSTNAMES),
    rules: atMost(listOf(httpRule), MAX_RULES).or([]),
  }),
});

function routeIdentityOf(meta: Valid<typeof metadata>) {
  return { ...identityOf(meta), annotations: withoutKubectlCopy(meta.annotations) };
}

const DEFAULT_HTTP_RULE: Valid<typeof httpRule> = {
  name: '',
  matches: [ANY_REQUEST],
  filters: [],
  backendRefs: [],
  timeouts: { request: undefined, backendRequest: undefined },
  retry: undefined,
  sessionPersistence: undefined,
};

export function httpRouteOf({ metadata: meta, spec }: Valid<typeof httpRouteSchema>): HttpRoute {
  const rules = spec.rules.length === 0 ? [DEFAULT_HTTP_RULE] : spec.rules;
  return {
    kind: 'HTTPRoute',
    ...routeIdentityOf(meta),
    parents: spec.parentRefs,
    hostnames: compactList(spec.hostnames),
    rules: rules.map(({ backendRefs, matches, ...rule }) => ({
      ...rule,
      matches: matches.length === 0 ? [ANY_REQUEST] : matches,
      backends: compactList(backendRefs),
    })),
  };
}

const SERVICE = /^\.?[a-z_][a-z_0-9]*(?:\.[a-z_][a-z_0-9]*)*$/i;
const METHOD = /^[A-Za-z_][A-Za-z_0-9]*$/;

const grpcMethod = object({
  type: matchType,
  service: fieldValue(1024).or(''),
  method: fieldValue(1024).or(''),
}).refine(({ type, service, method }, refuse) => {
  if (type === 'RegularExpression') return;
  if (service !== '' && !SERVICE.test(service))
    refuse(['service'], 'is not the name of a service as in "helloworld.Greeter"');
  if (method !== '' && !METHOD.test(method))
    refuse(['method'], 'is not the name of a method as in "SayHello"');
});

const ANY_METHOD = { type: 'Exact', service: '', method: '' } as const;
const ANY_CALL: GrpcMatch = { ...ANY_METHOD, headers: [] };

const grpcMatch = object({ method: grpcMethod.or(ANY_METHOD), headers: headerMatches }).transform(
  ({ method, headers }): GrpcMatch => ({ ...method, headers: compactList(headers) }),
);

export const grpcRouteSchema = object({
  metadata,
  spec: object({
    parentRefs,
    hostnames: hostnames(MAX_HOSTNAMES),
    rules: atMost(
      listOf(
        object({
          name: sectionName(),
          matches: atMost(listOf(grpcMatch), MAX_MATCHES).or([]),
          filters,
          backendRefs: httpBackends,
          sessionPersistence: sessionPersistence.nullish(),
        }),
      ),
      MAX_RULES,
    ).or([]),
  }),
});

export function grpcRouteOf({ metadata: meta, spec }: Valid<typeof grpcRouteSchema>): GrpcRoute {
  return {
    kind: 'GRPCRoute',
    ...routeIdentityOf(meta),
    parents: spec.parentRefs,
    hostnames: compactList(spec.hostnames),
    rules: spec.rules.map(({ backendRefs, matches, ...rule }) => ({
      ...rule,
      matches: matches.length === 0 ? [ANY_CALL] : matches,
      backends: compactList(backendRefs),
    })),
  };
}

const connectionRules = atMost(listOf(object({ name: sectionName(), backendRefs: backends })), MAX_RULES).or(
  [],
);

function connectionRulesOf(rules: Valid<typeof connectionRules>) {
  return rules.map(({ name, backendRefs }) => ({ name, backends: backendRefs }));
}

export const tlsRouteSchema = object({
  metadata,
  spec: object({ parentRefs, hostnames: hostnames(MAX_TLS_HOSTNAMES), rules: connectionRules }),
});

export function tlsRouteOf({ metadata: meta, spec }: Valid<typeof tlsRouteSchema>): TlsRoute {
  return {
    kind: 'TLSRoute',
    ...routeIdentityOf(meta),
    parents: spec.parentRefs,
    hostnames: compactList(spec.hostnames),
    rules: connectionRulesOf(spec.rules),
  };
}

/** TCPRoutes and UDPRoutes have the same fields. */
export const connectionRouteSchema = object({
  metadata,
  spec: object({ parentRefs, rules: connectionRules }),
});

export function connectionRouteOf(
  kind: (TcpRoute | UdpRoute)['kind'],
  { metadata: meta, spec }: Valid<typeof connectionRouteSchema>,
): TcpRoute | UdpRoute {
  return { kind, ...routeIdentityOf(meta), parents: spec.parentRefs, rules: connectionRulesOf(spec.rules) };
}
