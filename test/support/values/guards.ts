// What protects, as tests know it, apart from the agent's own list: annotations with values that guard and values that are wrong,
// and who is served by a model. Each kind of object stands alone in a cluster of its own.

import type { KubernetesObject } from '../../../agent/kubernetes/objects.ts';
import type { Listener, LoadBalancer } from '../../../agent/model/load-balancer.ts';
import type { RouteRule } from '../../../agent/model/routes.ts';
import { service, slice } from './build.ts';
import { configMap, secret } from './certificates.ts';
import { GatewayWorld } from './gateway-world.ts';
import { gatewayJson, ingressClassJson, ingressJson, routeJson } from './gateways.ts';
import { jwksOf, signer } from './tokens.ts';
import { HASHES } from './users.ts';

type Json = Readonly<Record<string, unknown>>;
export type GuardedKind =
  | 'Service'
  | 'Ingress'
  | 'IngressClass'
  | 'Gateway'
  | 'HTTPRoute'
  | 'GRPCRoute'
  | 'TLSRoute'
  | 'TCPRoute'
  | 'UDPRoute';

export interface Guard {
  readonly name: string;
  readonly kinds: readonly GuardedKind[];
  /** Values that guard, with what they need besides. */
  readonly good: readonly string[];
  /** Values that are not allowed, or that are wrong in part of a list. */
  readonly wrong: readonly string[];
  readonly with?: Readonly<Record<string, string>>;
  /** Cross-origin answers and trusted proxies: the object is served, to no more clients than without the annotation. */
  readonly closes?: 'origins' | 'trust';
}

const SERVICE = ['Service'] as const;
const ROUTES = ['Ingress', 'HTTPRoute'] as const;
const INGRESS = ['Ingress'] as const;
const CLASS = ['IngressClass'] as const;
const ASKED = { 'auth-url': 'http://web.default.svc.cluster.local/check' };
const TLS = { 'tls-certificate': 'web-tls' };
const CLIENTS = { ...TLS, 'tls-client-certificates': 'required', 'tls-client-ca': 'clients' };
const MEMBERS = { 'member-tls': 'verified', 'member-tls-ca': 'clients', 'member-tls-name': 'a.example' };
const JWT = '{issuer: https://id.example.org, audiences: shop, keys: configmap/keys}';
const NUMBERS = ['', 'x', '-1', '1.5', '10/s', '99999999999'];
const NAMES = ['', 'Not_A_Name', 'a/b/c', 'a b'];

/** Given by some kind. */
export const GIVEN: readonly Guard[] = [
  { name: 'mode', kinds: SERVICE, good: ['https'], wrong: ['', 'htps', 'HTTP'], with: TLS },
  { name: 'tls-certificate', kinds: SERVICE, good: ['web-tls'], wrong: [...NAMES, 'missing'] },
  { name: 'tls-min-version', kinds: SERVICE, good: ['1.3'], wrong: ['', '1.4', 'TLSv1.3'], with: TLS },
  { name: 'tls-ciphers', kinds: SERVICE, good: ['TLS_AES_128_GCM_SHA256'], wrong: ['', 'ALL'], with: TLS },
  {
    name: 'tls-client-certificates',
    kinds: SERVICE,
    good: ['required'],
    wrong: ['', 'requird', 'true'],
    with: CLIENTS,
  },
  {
    name: 'tls-client-ca',
    kinds: SERVICE,
    good: ['clients'],
    wrong: ['', 'Not_A_Name', 'missing'],
    with: CLIENTS,
  },
  {
    name: 'tls-client-crl',
    kinds: SERVICE,
    good: ['clients'],
    wrong: ['Not_A_Name', 'missing'],
    with: CLIENTS,
  },
  { name: 'member-tls', kinds: SERVICE, good: ['verified'], wrong: ['', 'yes', 'verifed'], with: MEMBERS },
  {
    name: 'member-tls-ca',
    kinds: SERVICE,
    good: ['clients'],
    wrong: ['', 'Not_A_Name', 'missing'],
    with: MEMBERS,
  },
  { name: 'member-tls-name', kinds: SERVICE, good: ['a.example'], wrong: ['', 'a b', '-'], with: MEMBERS },
  { name: 'rate-limit', kinds: SERVICE, good: ['10'], wrong: NUMBERS },
  { name: 'connection-limit', kinds: SERVICE, good: ['10'], wrong: NUMBERS },
  { name: 'member-connection-limit', kinds: SERVICE, good: ['10'], wrong: NUMBERS },
  {
    name: 'address-pool',
    kinds: ['Service', 'Gateway', 'IngressClass'],
    good: [],
    wrong: ['', 'Not_A_Name', 'a b'],
  },
  {
    name: 'trusted-proxies',
    kinds: ['Service', 'Gateway', 'IngressClass'],
    good: ['10.0.0.0/8'],
    wrong: ['x', '10.0.0.0/40', '10.0.0.0/8,x', '10.0.0.0/8,'],
    with: { mode: 'http' },
    closes: 'trust',
  },
  {
    name: 'whitelist-source-range',
    kinds: ROUTES,
    good: ['203.0.113.0/24', '203.0.113.0/24,', '203.0.113.0/24, 300.1.1.1', 'x,2001:db8::/32'],
    wrong: ['', ',', 'x', '203.0.113.0/33', '203.0.113.0-203.0.113.9', '0.0.0.0/0;'],
  },
  {
    name: 'allowlist-source-range',
    kinds: ROUTES,
    good: ['203.0.113.0/24', '203.0.113.0/24,,'],
    wrong: ['', ',', 'x', '203.0.113.0 /24 '],
  },
  {
    name: 'denylist-source-range',
    kinds: ROUTES,
    good: ['203.0.113.0/24'],
    wrong: ['', ',', 'x', '203.0.113.0/24,', '203.0.113.0/24,x'],
  },
  { name: 'limit-rps', kinds: ROUTES, good: ['5'], wrong: ['', '1r/s', '-1', 'x', '5.5'] },
  { name: 'limit-rpm', kinds: ROUTES, good: ['60'], wrong: ['', '1r/m', '-1', 'x', '5.5'] },
  { name: 'limit-connections', kinds: ROUTES, good: ['5'], wrong: ['', '5/s', '-1', 'x', '5.5'] },
  { name: 'proxy-body-size', kinds: ROUTES, good: ['1k', '8m'], wrong: ['', '1kb', 'much', '1 m', '-1'] },
  { name: 'auth-type', kinds: ROUTES, good: [], wrong: ['', 'Basic', 'digest'] },
  { name: 'auth-secret', kinds: ROUTES, good: ['users'], wrong: ['', 'My_Secret', 'a/b/c', 'other/users'] },
  {
    name: 'auth-remove-header',
    kinds: ROUTES,
    good: ['true'],
    wrong: ['yes', '1'],
    with: { 'auth-type': 'basic', 'auth-secret': 'users' },
  },
  {
    name: 'jwt',
    kinds: ROUTES,
    good: [JWT],
    wrong: [
      '',
      '[]',
      'true',
      JWT.replace('issuer', 'isuer'),
      JWT.replace('shop', '[]'),
      `${JWT}, alg: none}`,
    ],
  },
  { name: 'auth-tls-secret', kinds: INGRESS, good: [], wrong: ['', 'My_Secret', 'a/b/c'] },
  { name: 'auth-tls-verify-client', kinds: INGRESS, good: [], wrong: ['', 'yes', 'optional_no_ca', 'on'] },
  { name: 'auth-tls-verify-depth', kinds: INGRESS, good: [], wrong: ['', 'x', '-1', '1.5', '100', '1'] },
  { name: 'ssl-passthrough', kinds: INGRESS, good: [], wrong: ['', 'yes', 'on'] },
  { name: 'auth-tls-match-cn', kinds: INGRESS, good: [], wrong: ['', 'shop', 'CN=', 'CN=(', 'CN=shop'] },
  {
    name: 'auth-url',
    kinds: INGRESS,
    good: [
      ASKED['auth-url'],
      'http://web.default.svc:80/check?a=$escaped_request_uri',
      'http://WEB.default.svc',
    ],
    wrong: [
      ...['', 'web', '/check', 'ftp://web.default.svc/', 'http://web', 'http://web.default', 'http://$evil/'],
      ...['http://web.default.svc:81/', 'http://missing.default.svc/', 'http://web.other.svc.cluster.local/'],
      ...['https://sso.example/auth', 'http://127.0.0.1/', 'http://169.254.169.254/'],
      ...['http://web.default.svc$request_uri', 'http://web.default.svc/$uri', 'http://web.default.svc/../a'],
      ...['http://a@web.default.svc/', 'http://web.default.svc/#a', 'http://web.default.svc/ HTTP/1.1'],
      ...['http://[::1]/', 'http://web.default.svc/?a=$arg_b', 'http://web.default.svc:0/', 'http://x.svc/'],
    ],
  },
  {
    name: 'auth-signin',
    kinds: INGRESS,
    good: ['https://$host/start', 'https://sso.example/start?rd=$escaped_request_uri'],
    wrong: ['', '/start', 'javascript:alert(1)', 'https://$arg_x/', 'https://sso.example$request_uri'],
    with: ASKED,
  },
  {
    name: 'auth-method',
    kinds: INGRESS,
    good: ['POST', 'head'],
    wrong: ['', 'CONNECT', 'TRACE', 'G T'],
    with: ASKED,
  },
  {
    name: 'auth-response-headers',
    kinds: INGRESS,
    good: ['X-User', 'X-User, Authorization'],
    wrong: ['', 'X User', 'X-User,', 'Host', 'X-User,Transfer-Encoding', 'Content-Length'],
    with: ASKED,
  },
  { name: 'enable-global-auth', kinds: INGRESS, good: [], wrong: ['true', '', 'yes'] },
  {
    name: 'global-auth-url',
    kinds: CLASS,
    good: ['http://web.default.svc.cluster.local/check'],
    wrong: ['', 'web', 'https://sso.example/auth', 'https://$host/auth', 'http://web.default.svc:81/'],
  },
  {
    name: 'global-auth-method',
    kinds: CLASS,
    good: ['POST'],
    wrong: ['', 'CONNECT'],
    with: { 'global-auth-url': ASKED['auth-url'] },
  },
  {
    name: 'global-auth-signin',
    kinds: CLASS,
    good: ['https://$host/start'],
    wrong: ['', '/start'],
    with: { 'global-auth-url': ASKED['auth-url'] },
  },
  {
    name: 'global-auth-response-headers',
    kinds: CLASS,
    good: ['X-User'],
    wrong: ['', 'Host'],
    with: { 'global-auth-url': ASKED['auth-url'] },
  },
  { name: 'force-ssl-redirect', kinds: INGRESS, good: ['true'], wrong: ['yes', '1', 'ture'] },
  { name: 'backend-protocol', kinds: INGRESS, good: ['HTTPS'], wrong: ['', 'HTPS', 'FCGI', 'h2'] },
  {
    name: 'proxy-ssl-secret',
    kinds: INGRESS,
    good: ['default/web-tls', 'web-tls'],
    wrong: ['', 'other/web-tls', 'a b', 'web-tls/'],
    with: { 'backend-protocol': 'HTTPS' },
  },
  {
    name: 'proxy-ssl-verify-depth',
    kinds: INGRESS,
    good: [],
    wrong: ['', 'x', '-1', '1.5', '100'],
    with: { 'backend-protocol': 'HTTPS' },
  },
  {
    name: 'proxy-ssl-verify',
    kinds: INGRESS,
    good: [],
    wrong: ['', 'true', 'on', 'ON'],
    with: { 'backend-protocol': 'HTTPS' },
  },
  {
    name: 'proxy-ssl-ciphers',
    kinds: INGRESS,
    good: ['ECDHE-RSA-AES128-GCM-SHA256:TLS_AES_128_GCM_SHA256'],
    wrong: ['', 'HIGH', 'ALL', 'ECDHE-RSA-AES128-GCM-SHA256 verify none'],
    with: { 'backend-protocol': 'HTTPS' },
  },
  {
    name: 'proxy-ssl-protocols',
    kinds: INGRESS,
    good: ['TLSv1.3', 'TLSv1.2 TLSv1.3'],
    wrong: ['', 'TLSv1', 'TLSv1.2,TLSv1.3', 'TLSv1.3 SSLv3'],
    with: { 'backend-protocol': 'HTTPS' },
  },
  {
    name: 'cors-allow-origin',
    kinds: INGRESS,
    good: ['https://a.example', 'https://a.example,x'],
    wrong: ['', 'a.example', 'https://*a.example,x'],
    with: { 'enable-cors': 'true' },
    closes: 'origins',
  },
  {
    name: 'cors-allow-methods',
    kinds: INGRESS,
    good: ['GET'],
    wrong: ['', 'GET,(', 'G T'],
    with: { 'enable-cors': 'true' },
    closes: 'origins',
  },
  {
    name: 'cors-allow-headers',
    kinds: INGRESS,
    good: ['X-A'],
    wrong: ['', 'X-A,', 'X A'],
    with: { 'enable-cors': 'true' },
    closes: 'origins',
  },
  {
    name: 'cors-allow-credentials',
    kinds: INGRESS,
    good: [],
    wrong: ['yes', '1'],
    with: { 'enable-cors': 'true' },
    closes: 'origins',
  },
];

/** Asked for by Ingresses that come from ingress-nginx, and given by no kind. */
export const MISSING: Readonly<Record<string, string>> = {
  'auth-proxy-set-headers': 'default/headers',
  'enable-modsecurity': 'true',
  'enable-owasp-core-rules': 'true',
  'enable-owasp-modsecurity-crs': 'true',
  'modsecurity-snippet': 'SecRuleEngine On',
  'configuration-snippet': 'deny all;',
  'server-snippet': 'location /admin { return 403; }',
  'stream-snippet': 'allow 10.0.0.0/8; deny all;',
  'auth-snippet': 'proxy_set_header X-Group admins;',
  'proxy-cookie-path': '/ "/; HttpOnly; Secure"',
  'ssl-ciphers': 'ECDHE-RSA-AES128-GCM-SHA256',
  'limit-rate': '100',
  'global-rate-limit': '10',
};

export const KINDS: readonly GuardedKind[] = [
  'Service',
  'Ingress',
  'IngressClass',
  'Gateway',
  'HTTPRoute',
  'GRPCRoute',
  'TLSRoute',
  'TCPRoute',
  'UDPRoute',
];

export const OWN = 'headgate.io/';
export const NGINX = 'nginx.ingress.kubernetes.io/';

/** What clients without any credentials get of the object. */
export interface Served {
  readonly isClosed: boolean;
  /** All that restricts, and all that is allowed besides, as one text. */
  readonly guards: string;
  readonly cors: RouteRule['cors'];
  readonly trustedProxies: readonly string[];
  /** `object: message`. */
  readonly problems: readonly string[];
}

/** `annotations`: with their prefixes; `ofClass`: those of the class of an Ingress. */
export function servedWith(
  kind: GuardedKind,
  annotations: Readonly<Record<string, string>>,
  ofClass: Readonly<Record<string, string>> = {},
): Served {
  const { objects, key } = OBJECTS[kind](annotations, ofClass);
  const world = new GatewayWorld([...OTHERS, ...objects]);
  const loadBalancer = world.loadBalancer(key);
  const pool = world.state.desired.loadBalancers.get('pool:default/web');
  return judged(loadBalancer, pool);
}

const OTHERS: readonly (Json | KubernetesObject)[] = [
  secret('web-tls'),
  configMap('clients'),
  {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace: 'default', name: 'users' },
    stringData: { auth: `ann:${HASHES.sha256}` },
  },
  {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'default', name: 'keys' },
    data: { 'jwks.json': jwksOf(signer('a', 'ES256')) },
  },
  service({ name: 'dns', type: 'ClusterIP', ports: [{ protocol: 'UDP' }] }),
  slice({ serviceName: 'dns', ports: [{ protocol: 'UDP' }] }),
];
const GATEWAY = 'gateway:default/edge';
const INGRESS_CLASS = 'ingress:-/edge';
const PARENT = [{ name: 'edge' }];

type Made = { readonly objects: readonly (Json | KubernetesObject)[]; readonly key: string };
type Make = (
  annotations: Readonly<Record<string, string>>,
  ofClass: Readonly<Record<string, string>>,
) => Made;

const routeOn =
  (kind: string, protocol: string, listener: Json = {}): Make =>
  (annotations) => {
    const listeners = [{ name: 'l', port: 80, protocol, ...listener }];
    const rules = [{ backendRefs: [{ name: kind === 'UDPRoute' ? 'dns' : 'web', port: 80 }] }];
    const route = annotated(routeJson('api', PARENT, { rules }, kind), annotations);
    return { objects: [gatewayJson('edge', { listeners }), route], key: GATEWAY };
  };

const OBJECTS: Readonly<Record<GuardedKind, Make>> = {
  Service: (annotations) => ({ objects: [service({ annotations })], key: 'default/web' }),
  Ingress: (annotations, ofClass) => ({
    objects: [ingressClassJson('edge', ofClass), ingressJson('web', {}, annotations)],
    key: INGRESS_CLASS,
  }),
  IngressClass: (annotations) => ({
    objects: [ingressClassJson('edge', annotations), ingressJson()],
    key: INGRESS_CLASS,
  }),
  Gateway: (annotations) => ({
    objects: [gatewayJson('edge', {}, { annotations }), routeJson('api', PARENT)],
    key: GATEWAY,
  }),
  HTTPRoute: routeOn('HTTPRoute', 'HTTP'),
  GRPCRoute: routeOn('GRPCRoute', 'HTTP'),
  TLSRoute: routeOn('TLSRoute', 'TLS', { tls: { mode: 'Passthrough' } }),
  TCPRoute: routeOn('TCPRoute', 'TCP'),
  UDPRoute: routeOn('UDPRoute', 'UDP'),
};

function annotated(json: Json, annotations: Json): Json {
  return { ...json, metadata: { ...(json.metadata as Json), annotations } };
}

function judged({ listeners, problems }: LoadBalancer, pool: LoadBalancer | undefined): Served {
  const served = listeners.filter(
    ({ addresses, allowedCidrs }) => addresses.length > 0 && allowedCidrs.length > 0,
  );
  const rules = served.flatMap(rulesOf);
  return {
    isClosed: served.every(isClosed),
    guards: JSON.stringify([
      served.map(({ pool: own, ...listener }) => [listener, own.tls, own.memberConnectionLimit]),
      pool?.listeners.map((each) => each.pool.tls),
    ]),
    cors: rules.find(({ cors }) => cors !== undefined)?.cors,
    trustedProxies: served.flatMap(({ trustedProxies = [] }) => trustedProxies),
    problems: problems.map(({ object, message }) => `${object}: ${message}`),
  };
}

/** No connection, or request, gets to a member. */
function isClosed(listener: Listener): boolean {
  const { routing, pool, engine } = listener;
  if (routing === undefined) return pool.members.length === 0 && engine !== undefined;
  const lists = (listener.userLists ?? []).map(({ name }) => name);
  const keys = (listener.tokenKeys ?? []).map(({ name }) => name);
  if (routing.kind === 'http')
    return rulesOf(listener).every(
      ({ action, auth, jwt }) =>
        action.kind === 'answer' ||
        (auth !== undefined && !lists.includes(`secret ${auth.secret}`)) ||
        (jwt !== undefined && !keys.includes(jwt.keys)),
    );
  const backends = routing.kind === 'tcp' ? routing.backends : routing.hosts.flatMap((each) => each.backends);
  return backends.every(({ pool: to, weight }) => to === undefined || weight === 0);
}

function rulesOf({ routing }: Listener): readonly RouteRule[] {
  if (routing?.kind !== 'http') return [];
  return routing.sections
    .flatMap(({ hosts }) => hosts)
    .flatMap(({ entries }) => entries.map(({ rule }) => rule));
}
