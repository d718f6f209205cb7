// Ingresses and HTTPRoutes drawn by a seed, with what protects them and what becomes of their requests, and small changes of them.

import type { Seeded } from '../soak/seeded.ts';
import { jwksOf, type Signer } from './tokens.ts';

type Json = Readonly<Record<string, unknown>>;
type Annotations = Readonly<Record<string, string>>;

/** What an edge is made of: a change replaces some of it. */
export interface RandomEdge {
  readonly ingresses: readonly RandomIngress[];
  readonly routes: readonly RandomRoute[];
}

interface RandomIngress {
  readonly name: string;
  readonly host: string;
  readonly isTls: boolean;
  readonly paths: readonly { readonly path: string; readonly pathType: string; readonly service: string }[];
  readonly features: readonly Annotations[];
}

interface RandomRoute {
  readonly name: string;
  readonly host: string;
  readonly match: Json;
  readonly service: string;
  readonly features: readonly { readonly annotations?: Annotations; readonly filter?: Json }[];
}

export const INGRESS_HOSTS = ['shop.test', 'shop.test', 'www.shop.test', '*.shop.test'];
export const ROUTE_HOSTS = ['edge.test', 'edge.test', '*.edge.test'];
export const PATHS = [
  '/',
  '/',
  '/x',
  '/a',
  '/a/b',
  '/A',
  '/admin',
  '/v1/x',
  '/a%2Fb',
  '/a;x',
  '/static/x.css',
  '/admin/',
];
const SERVICES = ['web', 'other', 'canary'];

/** Addresses of clients are `NETWORK.200` to `.203`. */
const ranges = (network: string): readonly string[] => [
  `${network}.200/31`,
  `${network}.200/30`,
  `${network}.201/32`,
  `${network}.200/32,${network}.203/32`,
  'fe80::/10',
  '0.0.0.0/0',
];

const jwt = (changes: object = {}): Annotations => ({
  'headgate.io/jwt': JSON.stringify({
    ...{ issuer: 'https://id.example.org', audiences: ['shop'], keys: 'configmap/keys-0' },
    ...changes,
  }),
});

const JWTS: readonly Annotations[] = [
  jwt(),
  jwt({ keys: 'configmap/keys-1' }),
  jwt({ keys: 'configmap/none' }),
  jwt({ audiences: ['shop', 'other'] }),
  jwt({ audiences: '*' }),
  jwt({ claims: { groups: ['admin'] } }),
  jwt({ headers: { 'X-Sub': 'sub' } }),
  jwt({ from: 'header:x-token' }),
  { 'headgate.io/jwt': 'issuer: [' },
];

function protections(draw: Seeded, network: string): Annotations {
  const kind = draw.below(6);
  if (kind === 0) return { 'headgate.io/whitelist-source-range': draw.one(ranges(network)) };
  if (kind === 1) return { 'headgate.io/denylist-source-range': draw.one(ranges(network).slice(0, 4)) };
  if (kind === 2)
    return {
      'headgate.io/auth-type': 'basic',
      'headgate.io/auth-secret': draw.one(['users', 'other-users', 'no-users']),
    };
  if (kind === 3) return draw.one(JWTS);
  if (kind === 4) return { 'headgate.io/proxy-body-size': draw.one(['10', '50', '0']) };
  return { 'headgate.io/hsts': draw.one(['true', 'false']) };
}

const AUTH = 'http://auth.default.svc.cluster.local:80';
const OF_INGRESSES: readonly Annotations[] = [
  { 'auth-url': `${AUTH}/check` },
  { 'auth-url': `${AUTH}/check`, 'auth-signin': 'https://id.test/in' },
  { 'auth-url': `${AUTH}/check`, 'auth-response-headers': 'X-User' },
  { 'auth-url': `${AUTH}/any` },
  { 'auth-url': `${AUTH}/none`, 'auth-method': 'POST' },
  { 'auth-url': 'http://none.default.svc.cluster.local:80/check' },
  { 'auth-tls-secret': 'default/ca' },
  { 'auth-tls-secret': 'default/ca', 'auth-tls-verify-client': 'optional' },
  { 'auth-tls-secret': 'default/ca', 'auth-tls-match-cn': 'CN=shop' },
  { 'auth-tls-secret': 'default/ca', 'auth-tls-match-cn': 'CN=(shop|evil)' },
  { 'auth-tls-secret': 'default/ca', 'auth-tls-error-page': 'https://id.test/no-cert' },
  { 'auth-tls-secret': 'default/ca', 'auth-tls-pass-certificate-to-upstream': 'true' },
  { 'auth-tls-secret': 'default/none' },
  { 'enable-cors': 'true' },
  { 'enable-cors': 'true', 'cors-allow-origin': 'https://page.test' },
  { 'rewrite-target': '/new' },
  { 'rewrite-target': '/$1', 'use-regex': 'true' },
  { 'use-regex': 'true' },
  { 'permanent-redirect': 'https://away.test/' },
  { 'temporal-redirect': 'https://away.test/$request_uri' },
  { 'app-root': '/start' },
  { 'ssl-redirect': 'false' },
  { 'force-ssl-redirect': 'true' },
  { 'from-to-www-redirect': 'true' },
  { 'server-alias': 'alias.test' },
  { 'default-backend': 'other', 'custom-http-errors': '404,503' },
  { 'custom-http-errors': '404,503' },
  { 'upstream-vhost': 'inner.test' },
  { 'x-forwarded-prefix': '/p' },
  { canary: 'true', 'canary-by-header': 'x-canary' },
  { canary: 'true', 'canary-by-header': 'x-canary', 'canary-by-header-pattern': 'one|two' },
  { canary: 'true', 'canary-by-cookie': 'canary' },
  { canary: 'true', 'canary-weight': '100' },
  { 'ssl-passthrough': 'true' },
  { 'configuration-snippet': 'deny all;' },
  { 'enable-modsecurity': 'true' },
  { 'whitelist-source-range': 'wrong' },
];

const external = (path: string, more: Json = {}): Json => ({
  type: 'ExternalAuth',
  externalAuth: {
    protocol: 'HTTP',
    backendRef: { name: 'auth', port: 80 },
    http: { path, allowedHeaders: ['X-Pass'], ...more },
  },
});
const FILTERS: readonly Json[] = [
  external('/check'),
  external('/check', { allowedHeaders: ['Cookie'] }),
  external('/check', { allowedResponseHeaders: ['X-User'] }),
  external('/any'),
  external('/none'),
  { type: 'RequestRedirect', requestRedirect: { hostname: 'away.test', statusCode: 301 } },
  { type: 'RequestRedirect', requestRedirect: { scheme: 'https', statusCode: 302 } },
  { type: 'URLRewrite', urlRewrite: { path: { type: 'ReplaceFullPath', replaceFullPath: '/full' } } },
  { type: 'URLRewrite', urlRewrite: { path: { type: 'ReplacePrefixMatch', replacePrefixMatch: '/p' } } },
  { type: 'URLRewrite', urlRewrite: { hostname: 'inner.test' } },
  { type: 'RequestHeaderModifier', requestHeaderModifier: { set: [{ name: 'x-set', value: '1' }] } },
  { type: 'RequestHeaderModifier', requestHeaderModifier: { remove: ['x-a'] } },
  { type: 'ResponseHeaderModifier', responseHeaderModifier: { add: [{ name: 'x-added', value: '1' }] } },
  { type: 'CORS', cors: { allowOrigins: ['https://page.test'] } },
];

const ANYTHING: Json = { path: { type: 'PathPrefix', value: '/' } };
const MATCHES: readonly Json[] = [
  ...['/', '/a', '/a/b', '/admin', '/v1'].flatMap((value) => [
    { path: { type: 'PathPrefix', value } },
    { path: { type: 'Exact', value } },
  ]),
  { path: { type: 'RegularExpression', value: '/v[0-9]+' } },
  { path: { type: 'RegularExpression', value: '(?i)/ADMIN' } },
  { path: { type: 'PathPrefix', value: '/' }, headers: [{ name: 'x-a', value: '1' }] },
  {
    path: { type: 'PathPrefix', value: '/a' },
    headers: [{ type: 'RegularExpression', name: 'x-a', value: '[12]' }],
  },
  { path: { type: 'PathPrefix', value: '/a' }, queryParams: [{ name: 'q', value: '1' }] },
  {
    path: { type: 'PathPrefix', value: '/' },
    queryParams: [{ type: 'RegularExpression', name: 'q', value: '[a-c]+' }],
  },
  { path: { type: 'PathPrefix', value: '/a' }, method: 'POST' },
  { path: { type: 'PathPrefix', value: '/' }, method: 'OPTIONS' },
];

function featuresOfIngress(draw: Seeded, network: string): readonly Annotations[] {
  const nginx = (): Annotations =>
    Object.fromEntries(
      Object.entries(draw.one(OF_INGRESSES)).map(([key, value]) => [
        `nginx.ingress.kubernetes.io/${key}`,
        value,
      ]),
    );
  return Array.from({ length: draw.below(3) }, () =>
    draw.below(3) === 0 ? protections(draw, network) : nginx(),
  );
}

const INGRESS_PATHS = ['/', '/a', '/admin', '/a/b', '/v[0-9]+/(.*)', '/(.*)', '/A/?(.*)', '/static'];

function pathsOfIngress(draw: Seeded): RandomIngress['paths'] {
  return Array.from({ length: 1 + draw.below(2) }, () => ({
    path: draw.below(2) === 0 ? '/' : draw.one(INGRESS_PATHS),
    pathType: draw.one(['Prefix', 'Prefix', 'Exact', 'ImplementationSpecific']),
    service: draw.one(SERVICES),
  }));
}

function ingress(draw: Seeded, name: string, network: string): RandomIngress {
  return {
    name,
    host: draw.one(INGRESS_HOSTS),
    isTls: draw.below(2) === 0,
    paths: pathsOfIngress(draw),
    features: featuresOfIngress(draw, network),
  };
}

function featuresOfRoute(draw: Seeded, network: string): RandomRoute['features'] {
  return Array.from({ length: draw.below(3) }, () =>
    draw.below(2) === 0 ? { annotations: protections(draw, network) } : { filter: draw.one(FILTERS) },
  );
}

function route(draw: Seeded, name: string, network: string): RandomRoute {
  return {
    name,
    host: draw.one(ROUTE_HOSTS),
    match: draw.below(3) === 0 ? ANYTHING : draw.one(MATCHES),
    service: draw.one([...SERVICES, ...SERVICES, 'none']),
    features: featuresOfRoute(draw, network),
  };
}

export function randomEdge(draw: Seeded, network: string): RandomEdge {
  return {
    ingresses: Array.from({ length: 4 + draw.below(4) }, (_, at) => ingress(draw, `i${at}`, network)),
    routes: Array.from({ length: 4 + draw.below(4) }, (_, at) => route(draw, `r${at}`, network)),
  };
}

/** One to three of its objects are otherwise, come or go. */
export function changedEdge(draw: Seeded, edge: RandomEdge, network: string): RandomEdge {
  let { ingresses, routes } = edge;
  for (let left = 1 + draw.below(5); left > 0; left--)
    if (draw.below(2) === 0) {
      const at = draw.below(ingresses.length + 1);
      ingresses = changedAt(ingresses, at, draw.below(8) === 0, (old) =>
        old === undefined ? ingress(draw, `j${left}`, network) : otherIngress(draw, old, network),
      );
    } else {
      const at = draw.below(routes.length + 1);
      routes = changedAt(routes, at, draw.below(8) === 0, (old) =>
        old === undefined ? route(draw, `s${left}`, network) : otherRoute(draw, old, network),
      );
    }
  return { ingresses, routes };
}

function changedAt<T>(
  all: readonly T[],
  at: number,
  goes: boolean,
  change: (old: T | undefined) => T,
): readonly T[] {
  const old = all[at];
  if (old === undefined) return [...all, change(undefined)];
  return goes ? all.toSpliced(at, 1) : all.toSpliced(at, 1, change(old));
}

function otherIngress(draw: Seeded, old: RandomIngress, network: string): RandomIngress {
  const kind = draw.below(6);
  if (kind === 0) return { ...old, paths: pathsOfIngress(draw) };
  if (kind === 1) return { ...old, isTls: !old.isTls };
  if (kind === 2) return { ...old, host: draw.one(INGRESS_HOSTS) };
  return { ...old, features: featuresOfIngress(draw, network) };
}

function otherRoute(draw: Seeded, old: RandomRoute, network: string): RandomRoute {
  const kind = draw.below(6);
  if (kind === 0) return { ...old, match: draw.one(MATCHES) };
  if (kind === 1) return { ...old, service: draw.one(SERVICES) };
  if (kind === 2) return { ...old, host: draw.one(ROUTE_HOSTS) };
  return { ...old, features: featuresOfRoute(draw, network) };
}

/** Its objects in the namespace default; `created`: their order of age. */
export function edgeObjects({ ingresses, routes }: RandomEdge): readonly Json[] {
  return [...ingresses.map(ingressObject), ...routes.map(routeObject)];
}

function ingressObject({ name, host, isTls, paths, features }: RandomIngress): Json {
  return {
    ...{ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress' },
    metadata: { namespace: 'default', name, annotations: Object.assign({}, ...features) },
    spec: {
      ingressClassName: 'nginx',
      ...(isTls && { tls: [{ hosts: [host], secretName: 'tls' }] }),
      rules: [
        {
          host,
          http: {
            paths: paths.map(({ path, pathType, service }) => ({
              ...{ path, pathType },
              backend: { service: { name: service, port: { number: 80 } } },
            })),
          },
        },
      ],
    },
  };
}

function routeObject({ name, host, match, service, features }: RandomRoute): Json {
  const filters = features.flatMap(({ filter }) => (filter === undefined ? [] : [filter]));
  const kinds = new Set<unknown>();
  const once = filters.filter(({ type }) => !kinds.has(type) && kinds.add(type));
  const redirects = once.some(({ type }) => type === 'RequestRedirect');
  const fit = once.filter(({ type }) => !(redirects && type === 'URLRewrite'));
  return {
    ...{ apiVersion: 'gateway.networking.k8s.io/v1', kind: 'HTTPRoute' },
    metadata: {
      ...{ namespace: 'default', name },
      annotations: Object.assign({}, ...features.map(({ annotations }) => annotations ?? {})),
    },
    spec: {
      parentRefs: [{ name: 'edge' }],
      hostnames: [host],
      rules: [
        {
          matches: [match],
          filters: fit,
          ...(redirects ? {} : { backendRefs: [{ name: service, port: 80 }] }),
        },
      ],
    },
  };
}

export function tokenKeys(signers: readonly Signer[]): readonly Json[] {
  return signers.map((each, at) => ({
    ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'default', name: `keys-${at}` } },
    data: { 'jwks.json': jwksOf(each) },
  }));
}
