// What protects is judged by the plan: adding it closes, removing it opens, and weakening it opens, whatever gives it.

import test, { type ExecutionContext } from 'ava';
import { ANNOTATIONS_THAT_PROTECT } from '../../../../agent/protection/protections.ts';
import { API, AUTHORITY, CRL, WEB } from '../../../support/values/certificates.ts';
import { Folders, GATEWAY, route, service } from '../../../support/values/plan-folders.ts';
import { jwksOf, signer } from '../../../support/values/tokens.ts';
import { HASHES } from '../../../support/values/users.ts';

type Annotations = Readonly<Record<string, string>>;

interface Row {
  readonly name: string;
  /** Besides, on both sides. */
  readonly beside?: Annotations;
  readonly strong: Annotations;
  readonly weak?: Annotations;
  /** It says nothing of who may come in: a difference must be there. */
  readonly isHandling?: true;
  /** With it more may come in, such as pages of other sites. */
  readonly isAllowance?: true;
}

const yaml = (value: unknown): string => `${JSON.stringify(value)}\n---\n`;
const secret = (name: string, data: Annotations, type = 'Opaque'): string =>
  yaml({ apiVersion: 'v1', kind: 'Secret', type, metadata: { name, namespace: 'shop' }, stringData: data });
const KEYS = [signer('one', 'ES256'), signer('one', 'ES256')];
const jwks = (at: number): string => {
  const key = KEYS[at];
  return key === undefined ? '' : jwksOf(key);
};
const REST = [
  secret('tls', { 'tls.crt': WEB.cert, 'tls.key': WEB.key }, 'kubernetes.io/tls'),
  secret('ca', { 'ca.crt': AUTHORITY }),
  secret('ca-with-list', { 'ca.crt': AUTHORITY, 'ca.crl': CRL }),
  secret('other-ca', { 'ca.crt': API.cert }),
  secret('users', { auth: `ann:${HASHES.sha512}` }),
  secret('other-users', { auth: `eve:${HASHES.sha512}` }),
  ...[0, 1].map((at) =>
    yaml({
      ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `keys-${at}`, namespace: 'shop' } },
      data: { 'jwks.json': jwks(at) },
    }),
  ),
  `${service('auth', ['10.1.1.9'])}\n---\n${service('other', ['10.1.1.10'])}\n---\n`,
].join('');

const CLASS = yaml({
  ...{ apiVersion: 'networking.k8s.io/v1', kind: 'IngressClass' },
  metadata: { name: 'edge', annotations: { 'headgate.io/load-balancer-ips': '192.0.2.9' } },
  spec: { controller: 'headgate.io/ingress-controller' },
});

function ingress(annotations: Annotations): string {
  const backend = { service: { name: 'web', port: { number: 80 } } };
  const prefixed = Object.entries(annotations).map(([name, value]) => [
    name.includes('/') ? name : `nginx.ingress.kubernetes.io/${name}`,
    value,
  ]);
  const own = yaml({
    ...{ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress' },
    metadata: { name: 'shop', namespace: 'shop', annotations: Object.fromEntries(prefixed) },
    spec: {
      ingressClassName: 'edge',
      tls: [{ hosts: ['shop.example.org'], secretName: 'tls' }],
      rules: [{ host: 'shop.example.org', http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } }],
    },
  });
  return `${GATEWAY}${REST}${CLASS}${own}`;
}

const jwt = (changes: object = {}): Annotations => ({
  'headgate.io/jwt': JSON.stringify({
    ...{ issuer: 'https://id.example.org', audiences: ['shop'], keys: 'configmap/keys-0' },
    ...changes,
  }),
});
const BASIC = { 'auth-type': 'basic', 'auth-secret': 'users' };
const URL = { 'auth-url': 'http://auth.shop.svc.cluster.local:80/check' };
const TLS = { 'auth-tls-secret': 'shop/ca' };
const CORS = { 'enable-cors': 'true', 'cors-allow-origin': 'https://shop.example.org' };
const MEMBER_TLS = { 'backend-protocol': 'HTTPS' };

const INGRESSES: readonly Row[] = [
  ...['whitelist-source-range', 'allowlist-source-range'].map(
    (name): Row => ({ name, strong: { [name]: '10.0.0.0/16' }, weak: { [name]: '10.0.0.0/8' } }),
  ),
  {
    name: 'denylist-source-range',
    strong: { 'denylist-source-range': '10.0.0.0/8' },
    weak: { 'denylist-source-range': '10.0.0.0/16' },
  },
  ...['limit-rps', 'limit-rpm', 'limit-connections'].map(
    (name): Row => ({ name, strong: { [name]: '5' }, weak: { [name]: '50' } }),
  ),
  { name: 'proxy-body-size', strong: { 'proxy-body-size': '1k' }, weak: { 'proxy-body-size': '2k' } },
  { name: 'auth-type', strong: BASIC },
  { name: 'auth-secret', strong: BASIC, weak: { ...BASIC, 'auth-secret': 'other-users' } },
  {
    name: 'auth-remove-header',
    beside: BASIC,
    strong: { 'headgate.io/auth-remove-header': 'true' },
  },
  { name: 'jwt', strong: jwt(), weak: jwt({ audiences: ['shop', 'other'] }) },
  { name: 'jwt', strong: jwt(), weak: jwt({ issuer: 'https://evil.example.org' }) },
  { name: 'jwt', strong: jwt(), weak: jwt({ keys: 'configmap/keys-1' }) },
  { name: 'jwt', strong: jwt({ claims: { groups: ['admin'] } }), weak: jwt() },
  {
    name: 'jwt',
    strong: jwt({ claims: { groups: [`${'a'.repeat(70)}x`] } }),
    weak: jwt({ claims: { groups: [`${'a'.repeat(70)}y`] } }),
  },
  { name: 'jwt', strong: jwt({ leeway: 5 }), weak: jwt({ leeway: 50 }) },
  { name: 'auth-tls-secret', strong: TLS, weak: { 'auth-tls-secret': 'shop/other-ca' } },
  { name: 'auth-tls-secret', strong: { 'auth-tls-secret': 'shop/ca-with-list' }, weak: TLS },
  {
    name: 'auth-tls-verify-client',
    strong: { ...TLS, 'auth-tls-verify-client': 'on' },
    weak: { ...TLS, 'auth-tls-verify-client': 'optional' },
  },
  {
    name: 'auth-tls-verify-depth',
    beside: TLS,
    strong: { 'auth-tls-verify-depth': '0' },
    weak: { 'auth-tls-verify-depth': '1' },
  },
  {
    name: 'auth-tls-match-cn',
    beside: TLS,
    strong: { 'auth-tls-match-cn': 'CN=shop' },
    weak: { 'auth-tls-match-cn': 'CN=(shop|evil)' },
  },
  { name: 'auth-url', strong: URL, weak: { 'auth-url': 'http://other.shop.svc.cluster.local:80/check' } },
  { name: 'auth-url', strong: URL, weak: { 'auth-url': 'http://auth.shop.svc.cluster.local:80/other' } },
  {
    name: 'auth-method',
    strong: { ...URL, 'auth-method': 'POST' },
    weak: { ...URL, 'auth-method': 'GET' },
  },
  {
    name: 'auth-signin',
    beside: URL,
    strong: { 'auth-signin': 'https://id.example.org/in' },
    isHandling: true,
  },
  {
    name: 'auth-response-headers',
    beside: URL,
    strong: { 'auth-response-headers': 'X-User' },
  },
  {
    name: 'auth-cache-key',
    beside: URL,
    strong: { 'auth-cache-key': '$http_authorization' },
    isAllowance: true,
  },
  {
    name: 'cors-allow-origin',
    strong: CORS,
    weak: { ...CORS, 'cors-allow-origin': '*' },
    isAllowance: true,
  },
  {
    name: 'cors-allow-methods',
    beside: CORS,
    strong: { 'cors-allow-methods': 'GET' },
    weak: { 'cors-allow-methods': 'GET, DELETE' },
  },
  {
    name: 'cors-allow-headers',
    beside: CORS,
    strong: { 'cors-allow-headers': 'X-A' },
    weak: { 'cors-allow-headers': 'X-A, X-B' },
    isHandling: true,
  },
  {
    name: 'cors-allow-credentials',
    beside: CORS,
    strong: { 'cors-allow-credentials': 'false' },
    weak: { 'cors-allow-credentials': 'true' },
  },
  { name: 'ssl-passthrough', strong: { 'ssl-passthrough': 'true' } },
  {
    name: 'force-ssl-redirect',
    beside: { 'ssl-redirect': 'false' },
    strong: { 'force-ssl-redirect': 'true' },
  },
  { name: 'backend-protocol', strong: MEMBER_TLS },
  {
    name: 'proxy-ssl-verify',
    beside: { ...MEMBER_TLS, 'proxy-ssl-secret': 'shop/ca', 'proxy-ssl-name': 'web.shop' },
    strong: { 'proxy-ssl-verify': 'on' },
  },
  {
    name: 'proxy-ssl-secret',
    beside: MEMBER_TLS,
    strong: { 'proxy-ssl-verify': 'on', 'proxy-ssl-name': 'web.shop', 'proxy-ssl-secret': 'shop/ca' },
    weak: { 'proxy-ssl-verify': 'on', 'proxy-ssl-name': 'web.shop', 'proxy-ssl-secret': 'shop/other-ca' },
  },
  ...['server-snippet', 'configuration-snippet', 'stream-snippet', 'auth-snippet', 'modsecurity-snippet'].map(
    (name): Row => ({ name, strong: { [name]: 'deny all;' } }),
  ),
  ...['enable-modsecurity', 'enable-owasp-core-rules', 'enable-owasp-modsecurity-crs'].map(
    (name): Row => ({ name, strong: { [name]: 'true' } }),
  ),
  ...['limit-rate', 'global-rate-limit'].map((name): Row => ({ name, strong: { [name]: '5' } })),
  { name: 'proxy-cookie-path', strong: { 'proxy-cookie-path': '/ "/; Secure"' } },
  { name: 'ssl-ciphers', strong: { 'ssl-ciphers': 'ECDHE-RSA-AES128-GCM-SHA256' } },
  { name: 'auth-proxy-set-headers', strong: { 'auth-proxy-set-headers': 'shop/headers' } },
];

/** Without repetition. */
async function kindsOf(
  t: ExecutionContext,
  [before, after]: readonly [string, string],
  isKnown: boolean,
): Promise<readonly string[]> {
  const { requests, access, problems } = await new Folders(t).compare(before, after);
  if (isKnown) t.deepEqual(problems, []);
  return [...new Set([...access, ...requests].map(({ kind }) => kind))];
}

function check(rows: readonly Row[], what: string, objects: (annotations: Annotations) => string): void {
  for (const [at, { name, beside = {}, strong, weak, isHandling, isAllowance }] of rows.entries())
    test(`${what}: adding ${name} closes, removing it opens, weakening it opens (${at})`, async (t) => {
      const isKnown = ANNOTATIONS_THAT_PROTECT.some((each) => each.name === name && each.kinds.length > 0);
      const [without, withIt] = [objects(beside), objects({ ...beside, ...strong })];
      const added = await kindsOf(t, [without, withIt], isKnown);
      const removed = await kindsOf(t, [withIt, without], isKnown);
      if (isHandling) {
        if (Object.keys(strong).length > 0) t.true(added.length > 0 && removed.length > 0, 'it is seen');
      } else {
        const [opening, closing] = isAllowance ? ['closes', 'opens'] : ['opens', 'closes'];
        t.true(added.includes(closing) && !added.includes(opening), `added: ${added}`);
        t.true(removed.includes(opening) && !removed.includes(closing), `removed: ${removed}`);
      }
      if (weak === undefined) return;
      const weakened = await kindsOf(t, [withIt, objects({ ...beside, ...weak })], isKnown);
      if (isHandling) t.true(weakened.length > 0, 'it is seen');
      else t.true(weakened.includes('opens'), `weakened: ${weakened}`);
    });
}

check(INGRESSES, 'Ingress', ingress);

const OF_ROUTES = new Set(
  ANNOTATIONS_THAT_PROTECT.filter(({ kinds }) => kinds.includes('HTTPRoute')).map(({ name }) => name),
);
check(
  INGRESSES.filter(({ name }) => OF_ROUTES.has(name)),
  'HTTPRoute',
  (annotations) => {
    const prefixed = Object.entries(annotations).map(([name, value]) => [
      name.includes('/') ? name : `headgate.io/${name}`,
      value,
    ]);
    const text = JSON.stringify(Object.fromEntries(prefixed)).slice(1, -1);
    return `${GATEWAY}${REST}${route('all', '/', { annotations: text })}`;
  },
);

const MODE = { mode: 'http' };
const OWN_TLS = { 'tls-certificate': 'tls' };
const OWN_CLIENTS = { ...OWN_TLS, 'tls-client-ca': 'ca-map', 'tls-client-certificates': 'required' };

const SERVICES: readonly Row[] = [
  { name: 'rate-limit', strong: { 'rate-limit': '5' }, weak: { 'rate-limit': '50' } },
  { name: 'connection-limit', strong: { 'connection-limit': '5' }, weak: { 'connection-limit': '50' } },
  { name: 'tls-certificate', strong: OWN_TLS },
  {
    name: 'tls-min-version',
    beside: OWN_TLS,
    strong: { 'tls-min-version': '1.3' },
    weak: { 'tls-min-version': '1.2' },
  },
  {
    name: 'tls-client-ca',
    beside: OWN_TLS,
    strong: OWN_CLIENTS,
    weak: { ...OWN_CLIENTS, 'tls-client-ca': 'other-map' },
  },
  {
    name: 'tls-client-certificates',
    beside: OWN_TLS,
    strong: OWN_CLIENTS,
    weak: { ...OWN_CLIENTS, 'tls-client-certificates': 'optional' },
  },
  { name: 'tls-client-crl', beside: OWN_CLIENTS, strong: { 'tls-client-crl': 'ca-map' } },
  { name: 'trusted-proxies', beside: MODE, strong: { 'trusted-proxies': '10.0.0.0/8' }, isAllowance: true },
  { name: 'accept-proxy-protocol', strong: { 'accept-proxy-protocol': 'true' }, isAllowance: true },
  { name: 'member-tls', strong: { 'member-tls': 'unverified' } },
  {
    name: 'member-tls',
    strong: { 'member-tls': 'verified', 'member-tls-ca': 'ca-map', 'member-tls-name': 'own.shop' },
    weak: { 'member-tls': 'unverified' },
  },
];

function ownService(annotations: Annotations, ranges: readonly string[] = []): string {
  const prefixed = Object.entries({ 'load-balancer-ips': '192.0.2.20', ...annotations });
  const map = (name: string, cert: string): string =>
    yaml({
      ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'shop' } },
      data: { 'ca.crt': cert, 'ca.crl': CRL },
    });
  const own = yaml({
    ...{ apiVersion: 'v1', kind: 'Service' },
    metadata: {
      ...{ name: 'own', namespace: 'shop' },
      annotations: Object.fromEntries(prefixed.map(([name, value]) => [`headgate.io/${name}`, value])),
    },
    spec: {
      ...{ type: 'LoadBalancer', ports: [{ port: 8443, name: 'web' }] },
      ...(ranges.length > 0 && { loadBalancerSourceRanges: ranges }),
    },
  });
  return `${GATEWAY}${REST}${map('ca-map', AUTHORITY)}${map('other-map', API.cert)}${own}`;
}

check(SERVICES, 'Service', ownService);

test('Ranges of a Service close and open, also without members', async (t) => {
  const [all, wide, narrow] = [[], ['10.0.0.0/8'], ['10.0.0.0/16']].map((ranges) => ownService({}, ranges));
  for (const [before, after, kind] of [
    [all, wide, 'closes'],
    [wide, all, 'opens'],
    [narrow, wide, 'opens'],
    [wide, narrow, 'closes'],
  ] as const)
    t.deepEqual(await kindsOf(t, [before ?? '', after ?? ''], true), [kind]);
});

const EXTERNAL = (path: string, headers: string): string =>
  `{type: ExternalAuth, externalAuth: {protocol: HTTP, backendRef: {name: auth, port: 80}, http: {path: ${path}, allowedHeaders: [${headers}]}}}`;

test('The filter ExternalAuth closes where it comes, and opens where it goes or asks otherwise', async (t) => {
  const of = (filters: string): string => `${GATEWAY}${REST}${route('all', '/', { filters })}`;
  const [none, one, other] = ['', EXTERNAL('/check', 'X-A'), EXTERNAL('/other', 'X-A')].map(of);
  const handling = of(EXTERNAL('/check', 'X-B'));
  for (const [before, after, kind] of [
    [none, one, 'closes'],
    [one, none, 'opens'],
    [one, other, 'opens'],
    [one, handling, 'handling'],
  ] as const)
    t.deepEqual(await kindsOf(t, [before ?? '', after ?? ''], true), [kind]);
});

test('A folder without endpoints says what opens all the same', async (t) => {
  const bare = (text: string): string =>
    text
      .split('\n---\n')
      .filter((each) => !each.includes('EndpointSlice'))
      .join('\n---\n');
  const [open, closed] = [ingress({}), ingress({ 'whitelist-source-range': '10.0.0.0/8' })].map(bare);
  t.deepEqual(await kindsOf(t, [closed ?? '', open ?? ''], true), ['opens']);
  t.deepEqual(await kindsOf(t, [open ?? '', closed ?? ''], true), ['closes']);
});

/** They say nothing without another object, or no more than another row. */
const ELSEWHERE = new Set([
  ...['enable-global-auth', 'proxy-ssl-ciphers', 'proxy-ssl-protocols', 'proxy-ssl-verify-depth'],
]);

test('Every annotation of Ingresses that protects is in the table', (t) => {
  const known = new Set([...ELSEWHERE, ...INGRESSES.map(({ name }) => name)]);
  const missing = ANNOTATIONS_THAT_PROTECT.filter(
    ({ name, kinds }) => (kinds.includes('Ingress') || kinds.length === 0) && !known.has(name),
  );
  t.deepEqual(missing, []);
});
