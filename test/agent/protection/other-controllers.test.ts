// Annotations of other controllers that protect, on Ingresses of a class of this agent: they close, and their authors are told.

import test from 'ava';
import { OTHER_CONTROLLERS } from '../../../agent/protection/other-controllers.ts';
import { GatewayWorld } from '../../support/values/gateway-world.ts';
import { ingressClassJson, ingressJson } from '../../support/values/gateways.ts';
import { KINDS, NGINX, OWN, servedWith } from '../../support/values/guards.ts';

/** By the whole name, a value with which its controller restricts. Tests know them apart from the agent's own list. */
const NAMES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'ingress.kubernetes.io/': {
    'whitelist-source-range': '10.0.0.0/8',
    'allowlist-source-range': '10.0.0.0/8',
    'denylist-source-range': '10.0.0.0/8',
    'auth-type': 'basic',
    'auth-secret': 'users',
    'auth-url': 'https://sso.example/auth',
    'auth-signin': 'https://sso.example/start',
    oauth: 'oauth2_proxy',
    'auth-tls-secret': 'default/clients',
    'auth-tls-verify-client': 'on',
    'limit-rps': '5',
    'limit-rpm': '5',
    'limit-connections': '5',
    'rate-limit': 'extractorfunc: client.ip',
    'proxy-body-size': '8m',
    'force-ssl-redirect': 'true',
    waf: 'modsecurity',
    'secure-verify-ca-secret': 'ca',
    'ssl-passthrough': 'true',
    'allowed-hosts': 'a.example',
    'config-backend': 'http-request deny',
    'config-backend-early': 'http-request deny',
    'config-backend-late': 'http-request deny',
    'configuration-snippet': 'deny all;',
    'server-snippet': 'deny all;',
  },
  'haproxy-ingress.github.io/': {
    'whitelist-source-range': '10.0.0.0/8',
    'allowlist-source-range': '10.0.0.0/8',
    'denylist-source-range': '10.0.0.0/8',
    'auth-type': 'basic',
    'auth-secret': 'users',
    'auth-url': 'https://sso.example/auth',
    oauth: 'oauth2_proxy',
    'auth-tls-secret': 'clients',
    'auth-tls-verify-client': 'optional',
    'limit-rps': '5',
    'limit-connections': '5',
    'proxy-body-size': '8m',
    waf: 'modsecurity',
    'secure-verify-ca-secret': 'ca',
    'ssl-passthrough': 'true',
    'config-backend': 'http-request deny',
    'config-backend-early': 'http-request deny',
    'config-backend-late': 'http-request deny',
  },
  'haproxy.org/': {
    'allow-list': '10.0.0.0/8',
    whitelist: '10.0.0.0/8',
    'deny-list': '10.0.0.0/8',
    blacklist: '10.0.0.0/8',
    'auth-type': 'basic-auth',
    'auth-secret': 'default/users',
    'client-ca': 'default/ca',
    'rate-limit-requests': '10',
    'server-ca': 'default/ca',
    'ssl-passthrough': 'true',
    'backend-config-snippet': 'http-request deny',
  },
  'nginx.org/': {
    'basic-auth-secret': 'users',
    policies: 'allow-office',
    'limit-req-rate': '10r/s',
    'client-max-body-size': '8m',
    'server-snippets': 'deny all;',
    'location-snippets': 'deny all;',
  },
  'nginx.com/': { policies: 'oidc', 'jwt-key': 'keys' },
  'appprotect.f5.com/': { 'app-protect-enable': 'True', 'app-protect-policy': 'default/policy' },
  'traefik.ingress.kubernetes.io/': {
    'router.middlewares': 'default-auth@kubernetescrd',
    'router.tls.options': 'default-mtls@kubernetescrd',
    'router.entrypoints': 'internal',
    'whitelist-source-range': '10.0.0.0/8',
    'auth-type': 'basic',
    'auth-secret': 'users',
    'rate-limit': 'extractorfunc: client.ip',
  },
};
const GIVEN = Object.entries(NAMES).flatMap(([prefix, names]) =>
  Object.entries(names).map(([name, value]) => [prefix + name, value] as const),
);

test('The tests know every annotation of other controllers that protects', (t) => {
  t.deepEqual([...OTHER_CONTROLLERS.keys()].sort(), GIVEN.map(([full]) => full).sort());
});

for (const [full, value] of GIVEN)
  test(`Ingress: "${full}" closes, and its author is told`, (t) => {
    const { isClosed, problems } = servedWith('Ingress', { [full]: value });
    t.true(isClosed);
    t.true(
      problems.some(
        (each) => each.includes(full) && /protects by .*; its requests get status 403/.test(each),
      ),
      problems.join(),
    );
  });

test('An Ingress that says the same in the words of this agent is served as these say, and the other is told', (t) => {
  for (const [full, own, value] of [
    ['haproxy.org/allow-list', `${OWN}allowlist-source-range`, '203.0.113.0/24'],
    ['ingress.kubernetes.io/whitelist-source-range', `${NGINX}whitelist-source-range`, '203.0.113.0/24'],
    ['nginx.org/limit-req-rate', `${NGINX}limit-rps`, '5'],
  ] as const) {
    const { isClosed, guards, problems } = servedWith('Ingress', { [full]: '10.0.0.0/8', [own]: value });
    t.false(isClosed, full);
    t.is(guards, servedWith('Ingress', { [own]: value }).guards, full);
    t.true(
      problems.some((each) => /have no effect here/.test(each) && each.includes(full)),
      full,
    );
    // A wrong one of this agent's closes as ever.
    t.true(servedWith('Ingress', { [full]: '10.0.0.0/8', [own]: 'x' }).isClosed, own);
  }
});

test('What asks for nothing is open, and told', (t) => {
  for (const [full, value] of [
    ['ingress.kubernetes.io/whitelist-source-range', ''],
    ['ingress.kubernetes.io/force-ssl-redirect', 'false'],
    ['ingress.kubernetes.io/limit-rps', '0'],
    ['haproxy-ingress.github.io/auth-tls-verify-client', 'off'],
    ['haproxy-ingress.github.io/proxy-body-size', 'unlimited'],
    ['haproxy.org/ssl-passthrough', 'false'],
    ['nginx.org/server-snippets', 'add_header X-A b;'],
    ['traefik.ingress.kubernetes.io/router.entrypoints', 'web, websecure'],
    ['traefik.ingress.kubernetes.io/router.tls.options', 'default'],
  ] as const) {
    const { isClosed, problems } = servedWith('Ingress', { [full]: value });
    t.false(isClosed, full);
    t.true(
      problems.some((each) => each.includes(full)),
      full,
    );
  }
});

test('serve-without names one with its prefix; neither its end nor a neighbour', (t) => {
  const full = 'traefik.ingress.kubernetes.io/router.middlewares';
  const served = (names: string) =>
    servedWith('Ingress', { [full]: 'default-auth@kubernetescrd', [`${OWN}serve-without`]: names });
  const open = served(full);
  t.false(open.isClosed);
  t.true(open.problems.some((each) => each.includes(`Serves without "${full}"`)));
  for (const names of ['', 'router.middlewares', `${full}s`, 'traefik.ingress.kubernetes.io/auth-type'])
    t.true(served(names).isClosed, names);
});

test('On other kinds of object, which those controllers do not read them of, they mean nothing', (t) => {
  for (const kind of KINDS.filter((each) => each !== 'Ingress'))
    for (const [full, value] of GIVEN) {
      const { isClosed } = servedWith(kind, { [full]: value });
      t.false(isClosed, `${kind} ${full}`);
    }
});

test('An Ingress of another class keeps what it says to its own controller, and closes nothing here', (t) => {
  const other = { 'traefik.ingress.kubernetes.io/router.middlewares': 'default-auth@kubernetescrd' };
  const world = new GatewayWorld([
    ingressClassJson('edge'),
    { ...ingressClassJson('traefik'), spec: { controller: 'traefik.io/ingress-controller' } },
    ingressJson('web'),
  ]);
  const before = world.loadBalancer('ingress:-/edge');
  world.apply([ingressJson('other', { ingressClassName: 'traefik' }, other)]);
  t.is(world.loadBalancer('ingress:-/edge'), before);
  t.throws(() => world.status('Ingress', 'default/other'));
  t.throws(() => world.loadBalancer('ingress:-/traefik'));
});
