// Hosts of Ingresses whose TLS members end.

import test from 'ava';
import type { TlsRouting } from '../../../../agent/model/routes.ts';
import { secret } from '../../../support/values/certificates.ts';
import { GatewayWorld } from '../../../support/values/gateway-world.ts';
import { ingressClassJson, ingressJson } from '../../../support/values/gateways.ts';

type Json = Readonly<Record<string, unknown>>;
const KEY = 'ingress:-/edge';
const PREFIX = 'nginx.ingress.kubernetes.io/';
const PASSES = { [`${PREFIX}ssl-passthrough`]: 'true' };
const CERTIFICATE = { ...secret('any-tls'), namespace: 'default', key: 'default/any-tls' };

interface Given {
  readonly name: string;
  readonly hosts?: readonly string[];
  readonly path?: string;
  readonly annotations?: Json;
  readonly tls?: readonly Json[];
}

/** The first is the oldest. */
function world(classAnnotations: Record<string, string>, ...given: readonly Given[]): GatewayWorld {
  const ingresses = given.map(({ name, hosts = ['a.org'], path = '/', annotations, tls = [] }, at) => {
    const backend = { service: { name: 'web', port: { number: 80 } } };
    const rules = hosts.map((host) => ({ host, http: { paths: [{ path, pathType: 'Prefix', backend }] } }));
    const json = ingressJson(name, { rules, tls }, annotations);
    const creationTimestamp = `2026-11-${String(at + 1).padStart(2, '0')}T00:00:00Z`;
    return { ...json, metadata: { ...(json.metadata as Json), creationTimestamp } };
  });
  return new GatewayWorld([ingressClassJson('edge', classAnnotations), CERTIFICATE, ...ingresses] as never);
}

const problems = (given: GatewayWorld) =>
  given.loadBalancer(KEY).problems.map(({ object, message }) => `${object}: ${message}`);
const plain = (given: GatewayWorld) =>
  given.routes(80, undefined, KEY).map((text) => text.replace(/ \(.*/, ''));
const https = (given: GatewayWorld) => given.loadBalancer(KEY).listeners.find(({ port }) => port === 443);
/** `a.org pool`, and `x.a.org ended`. */
const passed = (routing: TlsRouting | undefined) =>
  routing?.hosts.map(
    ({ host, backends, isEnded }) =>
      `${host.kind === 'one-label' ? '*.' : ''}${host.suffix} ${isEnded ? 'ended' : backends[0]?.pool}`,
  );
const POOL = 'pool:default:web.tcp:tcp:80:v4';
const OTHER = { name: 'other', hosts: ['other.org'], tls: [{ secretName: 'any-tls' }] };

test('TLS of a host is passed through to the Service of its path /, beside hosts whose TLS ends here', (t) => {
  const given = world({}, { name: 'web', annotations: PASSES }, OTHER);
  t.deepEqual(passed(https(given)?.dispatch), [`a.org ${POOL}`, ' ended']);
  t.deepEqual(plain(given), ['a.org/ → redirect 308', 'other.org/ → redirect 308']);
  t.deepEqual(
    given
      .routes(443, undefined, KEY)
      .map((text) => text.replace(/ \(.*/, ''))
      .sort()[0],
    'a.org/ → 403',
  );
  t.deepEqual(problems(given), []);
  t.true(given.state.desired.loadBalancers.has('pool:default/web.tcp'));
});

test('Without a certificate port 443 passes through only', (t) => {
  const listener = https(world({}, { name: 'web', annotations: PASSES }));
  t.is(listener?.dispatch, undefined);
  t.is(listener?.tls, undefined);
  t.deepEqual(passed(listener?.routing as TlsRouting), [`a.org ${POOL}`]);
});

test('A host below a wildcard that is passed through keeps its own TLS', (t) => {
  const given = world(
    {},
    { name: 'web', hosts: ['*.a.org'], annotations: PASSES },
    { ...OTHER, hosts: ['x.a.org'] },
  );
  t.deepEqual(passed(https(given)?.dispatch), [`*.a.org ${POOL}`, 'x.a.org ended', ' ended']);
});

test('Of the Ingresses of a host the oldest decides whether its TLS is passed through', (t) => {
  const asking = { name: 'asking', annotations: PASSES };
  const serving = { name: 'serving', path: '/admin' };
  const first = world({}, asking, serving, OTHER);
  t.deepEqual(passed(https(first)?.dispatch), [`a.org ${POOL}`, ' ended']);
  t.regex(problems(first).join(), /Ingress default\/serving: Nothing of host "a.org" is served by https/);
  const second = world({}, serving, asking, OTHER);
  t.is(https(second)?.dispatch, undefined);
  t.regex(problems(second).join(), /Ingress default\/asking: Nothing of host "a.org" is served by https/);
});

for (const [title, annotations, ofClass] of [
  ['ranges of clients', { ...PASSES, [`${PREFIX}whitelist-source-range`]: '10.0.0.0/8' }, {}],
  ['users', { ...PASSES, [`${PREFIX}auth-type`]: 'basic' }, {}],
  ['certificates of clients', { ...PASSES, [`${PREFIX}auth-tls-secret`]: 'clients' }, {}],
  ['what Headgate does not have', { ...PASSES, [`${PREFIX}enable-modsecurity`]: 'true' }, {}],
  [
    'the authorization server of its class',
    PASSES,
    { 'headgate.io/global-auth-url': 'http://web.default.svc.cluster.local:80/auth' },
  ],
] as const)
  test(`TLS is not passed through beside ${title}, and the host answers 403`, (t) => {
    const given = world(ofClass, { name: 'web', annotations }, OTHER);
    t.is(https(given)?.dispatch, undefined);
    t.true(given.routes(443, undefined, KEY).some((text) => text.startsWith('a.org/ → 403')));
    t.true(problems(given).some((text) => text.startsWith('Ingress default/web: ')));
  });

test('TLS is not passed through by a class that is closed', (t) => {
  const given = world({ 'headgate.io/trusted-proxys': 'x' }, { name: 'web', annotations: PASSES }, OTHER);
  t.is(https(given)?.dispatch, undefined);
});

test('A host without a path / is not passed through', (t) => {
  const given = world({}, { name: 'web', path: '/x', annotations: PASSES }, OTHER);
  t.is(https(given)?.dispatch, undefined);
  t.regex(problems(given).join(), /its path \/ has no Service; it gets status 403/);
});
