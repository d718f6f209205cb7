// Which service Ingresses have asked: by a Service's name, by a host of their class, or by the class itself.

import test from 'ava';
import type { HttpRouting, RouteRule } from '../../../../agent/model/routes.ts';
import { CLASS_AUTH_ANNOTATIONS } from '../../../../agent/translate/ingress/external-auth.ts';
import { service, slice } from '../../../support/values/build.ts';
import { AUTHORITY, WEB } from '../../../support/values/certificates.ts';
import { GatewayWorld } from '../../../support/values/gateway-world.ts';
import { ingressClassJson, ingressJson } from '../../../support/values/gateways.ts';

const CLASS = 'ingress:-/edge';
const OWN = 'headgate.io/';
const BY_HOST = { [`${OWN}auth-url`]: 'https://$host/oauth2/auth' };

const pathOf = (path: string, name: string, pathType = 'Prefix') => ({
  path,
  pathType,
  backend: { service: { name, port: { number: 80 } } },
});

/** An Ingress of `host` that sends `path` to Service `name` of its namespace. */
function of(
  name: string,
  path: string,
  annotations: Readonly<Record<string, string>> = {},
  { host = 'example.org', namespace = 'default', to = 'web' } = {},
) {
  const json = ingressJson(name, { rules: [{ host, http: { paths: [pathOf(path, to)] } }] }, annotations);
  return { ...json, metadata: { ...(json.metadata as object), namespace } };
}

function worldOf(ofClass: Readonly<Record<string, string>>, ...ingresses: readonly object[]): GatewayWorld {
  const others = ['default', 'sso'].flatMap((namespace) => [
    service({ namespace, name: 'proxy', type: 'ClusterIP' }),
    slice({ namespace, serviceName: 'proxy' }),
  ]);
  return new GatewayWorld([...others, ingressClassJson('edge', ofClass), ...ingresses] as never[]);
}

function rulesOf(world: GatewayWorld): Readonly<Record<string, RouteRule>> {
  const { sections } = world.listener(80, 'tcp', CLASS).routing as HttpRouting;
  const entries = sections.flatMap(({ hosts }) => hosts).flatMap((host) => host.entries);
  return Object.fromEntries(entries.map(({ rule }) => [rule.route, rule]));
}

const problemsOf = (world: GatewayWorld): string =>
  world
    .loadBalancer(CLASS)
    .problems.map(({ object, message }) => `${object}: ${message}`)
    .join('\n');

test('A host of the class leads to the pool of its route, with its rewriting, and not through its rules', (t) => {
  const rewriting = { [`${OWN}rewrite-target`]: '/base/$2', [`${OWN}limit-rps`]: '5' };
  const world = worldOf(
    {},
    of('web', '/', BY_HOST),
    of('proxy', '/oauth2(/|$)(.*)', rewriting, { to: 'proxy' }),
  );
  const { 'Ingress default/web': web, 'Ingress default/proxy': proxy } = rulesOf(world);
  t.is(web?.externalAuth?.pool, 'pool:default:proxy.asked:tcp:80:v4');
  t.deepEqual([web?.externalAuth?.path, web?.externalAuth?.host], ['/base/auth', '$host']);
  t.is(proxy?.externalAuth, undefined);
  t.true(world.state.desired.loadBalancers.has('pool:default/proxy.asked'));
  t.true(world.listener(80, 'tcp', CLASS).asksServers);
  t.is(problemsOf(world), '');
});

test('A service is asked with the certificate and the verification of its route, or of the Ingress that names it', (t) => {
  const withTls = {
    [`${OWN}backend-protocol`]: 'HTTPS',
    [`${OWN}proxy-ssl-secret`]: 'members',
    [`${OWN}proxy-ssl-verify`]: 'on',
    [`${OWN}proxy-ssl-name`]: 'proxy.example',
  };
  const members = {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'Opaque',
    metadata: { namespace: 'default', name: 'members' },
    stringData: { 'ca.crt': AUTHORITY, 'tls.crt': WEB.cert, 'tls.key': WEB.key },
  };
  const named = (scheme: string) => ({ [`${OWN}auth-url`]: `${scheme}://proxy.default.svc:80/auth` });
  const ofClass = { [`${OWN}global-auth-url`]: 'https://example.org/oauth2/auth' };
  for (const [asking, isWithTls] of [
    [BY_HOST, true],
    [{}, true],
    [{ ...withTls, ...named('https') }, true],
    [named('https'), false],
    [{ ...withTls, ...named('https'), [`${OWN}backend-protocol`]: 'HTTP' }, true],
    [{ ...withTls, ...named('http') }, false],
  ] as const) {
    const off = { [`${OWN}enable-global-auth`]: 'false' };
    const proxy = of('proxy', '/oauth2', { ...withTls, ...off }, { to: 'proxy' });
    const world = worldOf(ofClass, members, of('web', '/', asking), proxy);
    const listener = rulesOf(world)['Ingress default/web']?.externalAuth?.pool ?? '';
    const pools = [...world.state.desired.loadBalancers.values()].flatMap((each) => each.listeners);
    const tls = pools.find(({ name }) => name === listener)?.pool.tls;
    t.is(tls?.certificate?.name, isWithTls ? 'default/members' : undefined, JSON.stringify(asking));
    t.is(tls?.authority?.name, isWithTls ? 'secret default/members' : undefined);
    t.is(problemsOf(world), '');
  }
});

test('Members without TLS get none of the service that is asked with it, whose Secret is missed', (t) => {
  const members = {
    [`${OWN}proxy-ssl-secret`]: 'missing',
    [`${OWN}auth-url`]: 'https://proxy.default.svc:80/auth',
  };
  const world = worldOf({}, of('web', '/', members));
  const { action } = rulesOf(world)['Ingress default/web'] ?? {};
  t.is(action?.kind === 'forward' && action.backends[0]?.pool, 'pool:default:web:tcp:80:v4');
  t.regex(problemsOf(world), /default\/web: Cannot use Secret "default\/missing" .* status 503/);
  const byHost = { ...members, [`${OWN}auth-url`]: 'https://example.org/oauth2/auth' };
  const closed = worldOf({}, of('web', '/', byHost), of('proxy', '/oauth2', {}, { to: 'proxy' }));
  t.deepEqual(rulesOf(closed)['Ingress default/web']?.action, { kind: 'answer', status: 403 });
});

test('An authorization server behind its own question closes instead of going in a circle', (t) => {
  const world = worldOf({}, of('web', '/', BY_HOST));
  t.deepEqual(rulesOf(world)['Ingress default/web']?.action, { kind: 'answer', status: 403 });
  t.regex(problemsOf(world), /asks an authorization server itself/);
  t.is(world.listener(80, 'tcp', CLASS).asksServers, undefined);
});

test('The route of an authorization server that comes, or goes, opens or closes what asks it', (t) => {
  const world = worldOf({}, of('web', '/', { [`${OWN}auth-url`]: 'https://sso.example.org/auth' }));
  t.deepEqual(rulesOf(world)['Ingress default/web']?.action, { kind: 'answer', status: 403 });
  world.apply([of('proxy', '/', {}, { host: 'sso.example.org', to: 'proxy' })] as never[]);
  const first = rulesOf(world)['Ingress default/web'];
  t.is(first?.externalAuth?.host, 'sso.example.org');
  world.apply([of('else', '/', {}, { host: 'else.example.org' })] as never[]);
  t.is(rulesOf(world)['Ingress default/web'], first, 'another host changes nothing');
  world.remove('Ingress', 'default/proxy');
  t.deepEqual(rulesOf(world)['Ingress default/web']?.action, { kind: 'answer', status: 403 });
});

test('A route of another namespace is asked only if everybody may use it', (t) => {
  const url = { [`${OWN}auth-url`]: 'https://sso.example.org/auth' };
  const at = { host: 'sso.example.org', namespace: 'sso', to: 'proxy' };
  for (const [annotations, isOpen] of [
    [{}, true],
    [{ [`${OWN}limit-rps`]: '5' }, true],
    [{ [`${OWN}whitelist-source-range`]: '10.0.0.0/8' }, false],
    [{ [`${OWN}denylist-source-range`]: '10.0.0.0/8' }, false],
    [{ [`${OWN}auth-type`]: 'basic', [`${OWN}auth-secret`]: 'users' }, false],
  ] as const) {
    const rules = rulesOf(worldOf({}, of('web', '/', url), of('proxy', '/', annotations, at)));
    t.is(rules['Ingress default/web']?.action.kind === 'forward', isOpen, JSON.stringify(annotations));
  }
});

test('A Service of another namespace is asked only with the consent of the class', (t) => {
  const url = { [`${OWN}auth-url`]: 'http://proxy.sso.svc.cluster.local/auth' };
  for (const [namespaces, isOpen] of [
    ['', false],
    ['other', false],
    ['other, sso', true],
    ['*', true],
    ['ss*', false],
  ] as const) {
    const ofClass = namespaces === '' ? {} : { [`${OWN}auth-namespaces`]: namespaces };
    const world = worldOf(ofClass, of('web', '/', url));
    const { action, externalAuth } = rulesOf(world)['Ingress default/web'] ?? {};
    t.is(action?.kind === 'forward', isOpen, namespaces);
    t.is(externalAuth?.pool, isOpen ? 'pool:sso:proxy.asked:tcp:80:v4' : undefined);
    if (!isOpen) t.regex(problemsOf(world), /of another namespace/);
  }
});

test('The authorization server of the class is asked for Ingresses without their own, and not about challenges', (t) => {
  const ofClass = {
    [`${OWN}global-auth-url`]: 'http://proxy.sso.svc.cluster.local/auth',
    [`${OWN}global-auth-signin`]: 'https://sso.example.org/start',
  };
  const world = worldOf(
    ofClass,
    of('web', '/'),
    of('own', '/own', { [`${OWN}auth-url`]: 'http://proxy.default.svc/auth' }),
    of('off', '/off', { [`${OWN}enable-global-auth`]: 'false' }),
    of('acme', '/.well-known/acme-challenge/x'),
  );
  const asked = Object.entries(rulesOf(world)).map(([route, rule]) => [route, rule.externalAuth?.pool]);
  t.deepEqual(Object.fromEntries(asked), {
    'Ingress default/web': 'pool:sso:proxy.asked:tcp:80:v4',
    'Ingress default/own': 'pool:default:proxy.asked:tcp:80:v4',
    'Ingress default/off': undefined,
    'Ingress default/acme': undefined,
  });
  const { refusal } = rulesOf(world)['Ingress default/web']?.externalAuth ?? {};
  t.is(refusal?.signIn, 'https://sso.example.org/start?rd=$scheme://$http_host$escaped_request_uri');
});

test('Each annotation of an authorization server can stand on the class, too', (t) => {
  const values: Readonly<Record<string, string>> = {
    'auth-url': 'http://proxy.sso.svc.cluster.local/auth',
    'auth-method': 'HEAD',
    'auth-signin': 'https://sso.example.org/start',
    'auth-response-headers': 'X-User',
    'auth-always-set-cookie': 'true',
    'auth-cache-key': '$cookie_sid',
    'auth-cache-duration': '200 1m',
  };
  const names = CLASS_AUTH_ANNOTATIONS.filter((name) => name.startsWith('global-'));
  const ofClass = names.map((name) => [OWN + name, values[name.slice('global-'.length)] ?? 'rd']);
  const world = worldOf(Object.fromEntries(ofClass), of('web', '/'));
  t.is(problemsOf(world), '');
  t.deepEqual(rulesOf(world)['Ingress default/web']?.externalAuth?.cache?.seconds, [[200, 60]]);
});

test('A redirect of an Ingress is answered without a question', (t) => {
  const world = worldOf({}, of('web', '/', { ...BY_HOST, [`${OWN}permanent-redirect`]: 'https://x.org' }));
  t.is(rulesOf(world)['Ingress default/web']?.externalAuth, undefined);
});

test('A canary asks what the Ingress asks whose requests it takes, and none that asks another takes any', (t) => {
  const canary = {
    [`${OWN}canary`]: 'true',
    [`${OWN}canary-weight`]: '50',
    [`${OWN}canary-by-header`]: 'x-c',
  };
  const proxy = of('proxy', '/oauth2', {}, { to: 'proxy' });
  const world = worldOf({}, of('web', '/', BY_HOST), proxy, of('next', '/', canary, { to: 'proxy' }));
  const { sections } = world.listener(80, 'tcp', CLASS).routing as HttpRouting;
  const entries = sections.flatMap(({ hosts }) => hosts).flatMap((host) => host.entries);
  const guarded = entries.filter(({ match }) => match.path.value === '');
  t.true(guarded.length > 1);
  t.true(guarded.every(({ rule }) => rule.externalAuth?.pool === 'pool:default:proxy.asked:tcp:80:v4'));
  const more = { ...canary, [`${OWN}auth-url`]: 'http://proxy.default.svc/other' };
  const other = worldOf({}, of('web', '/', BY_HOST), proxy, of('next', '/', more, { to: 'proxy' }));
  const { action } = rulesOf(other)['Ingress default/next'] ?? {};
  t.deepEqual(action, { kind: 'answer', status: 403 });
});
