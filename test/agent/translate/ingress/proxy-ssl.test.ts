// TLS to members by annotations of ingress-nginx: what an Ingress asks for, and the pool that follows.

import test from 'ava';
import type { KubernetesObject } from '../../../../agent/kubernetes/objects.ts';
import type { HttpRouting } from '../../../../agent/model/routes.ts';
import { proxySslOf } from '../../../../agent/translate/ingress/proxy-ssl.ts';
import { joinedTls } from '../../../../agent/translate/pool/asked-tls.ts';
import { API, AUTHORITY, PLAIN, WEB } from '../../../support/values/certificates.ts';
import { GatewayWorld } from '../../../support/values/gateway-world.ts';
import { ingressClassJson, ingressJson, parsed } from '../../../support/values/gateways.ts';

type Json = Readonly<Record<string, unknown>>;
const KEY = 'ingress:-/edge';
const HTTPS = { 'backend-protocol': 'HTTPS' };
const VERIFIED = {
  ...HTTPS,
  'proxy-ssl-secret': 'default/members',
  'proxy-ssl-verify': 'on',
  'proxy-ssl-name': 'web.example',
};

function members(fields: Json, type = 'Opaque'): KubernetesObject {
  return parsed({
    apiVersion: 'v1',
    kind: 'Secret',
    type,
    metadata: { namespace: 'default', name: 'members' },
    stringData: fields,
  });
}

const WHOLE = { 'ca.crt': AUTHORITY, 'tls.crt': WEB.cert, 'tls.key': WEB.key };

function world(annotations: Json, ...others: readonly KubernetesObject[]): GatewayWorld {
  const own = Object.entries(annotations).map(([name, value]) => [
    `nginx.ingress.kubernetes.io/${name}`,
    value,
  ]);
  return new GatewayWorld([ingressClassJson(), ingressJson('web', {}, Object.fromEntries(own)), ...others]);
}

function served(given: GatewayWorld) {
  const { routing } = given.listener(80, 'tcp', KEY);
  const action = (routing as HttpRouting).sections[0]?.hosts[0]?.entries[0]?.rule.action;
  const problems = given.loadBalancer(KEY).problems.map(({ message }) => message);
  if (action?.kind !== 'forward') return { status: action?.kind === 'answer' ? action.status : 0, problems };
  const [, name] = /^pool:default:(\S+?):tcp/.exec(action.backends[0]?.pool ?? '') ?? [];
  const [listener] = given.loadBalancer(`pool:default/${name}`).listeners;
  return { name, pool: listener?.pool, problems };
}

test('Members are verified by the authority and the name, and get the certificate of the Secret', (t) => {
  const { name, pool, problems } = served(world(VERIFIED, members(WHOLE)));
  t.deepEqual(problems, []);
  t.regex(name ?? '', /^web\.crt[0-9a-f]{16}tls$/);
  t.is(pool?.members.length, 1);
  t.like(pool?.tls, { serverName: 'web.example', authority: { name: 'secret default/members' } });
  t.is(pool?.tls?.certificate?.name, 'default/members');
});

test('A Secret with authorities alone verifies, and one with a certificate alone gives it to members', (t) => {
  const lists = served(world(VERIFIED, members({ 'ca.crt': AUTHORITY }))).pool?.tls;
  t.is(lists?.certificate, undefined);
  t.is(lists?.authority?.name, 'secret default/members');
  const { 'ca.crt': _, ...pair } = WHOLE;
  const given = { ...HTTPS, 'proxy-ssl-secret': 'members' };
  const shown = served(world(given, members(pair, 'kubernetes.io/tls'))).pool?.tls;
  t.is(shown?.certificate?.name, 'default/members');
  t.is(shown?.authority, undefined);
});

for (const [title, fields] of [
  ['is missing', undefined],
  ['has no authority', { 'tls.crt': WEB.cert, 'tls.key': WEB.key }],
  ['has a broken authority', { ...WHOLE, 'ca.crt': 'x' }],
  ['has the key of another certificate', { ...WHOLE, 'tls.key': API.key }],
] as const)
  test(`Nothing is sent to members while the Secret ${title}, and the author is told`, (t) => {
    const { pool, problems } = served(
      world(VERIFIED, ...(fields === undefined ? [] : [members(fields, 'kubernetes.io/tls')])),
    );
    t.deepEqual(pool?.members, []);
    t.regex(problems.join(), /Cannot use Secret "default\/members" for TLS to members: .*status 503/);
  });

test('Ingresses that ask for other TLS have other pools of the same Service', (t) => {
  const given = world(VERIFIED, members(WHOLE));
  const before = served(given).name;
  const others = [
    { 'proxy-ssl-name': 'api.example' },
    { 'proxy-ssl-verify': 'off' },
    { 'proxy-ssl-protocols': 'TLSv1.3' },
  ];
  const names = others.map((each) => served(world({ ...VERIFIED, ...each }, members(WHOLE))).name);
  t.is(new Set([before, ...names]).size, 4);
});

test('Another certificate in the Secret changes the pool alone', (t) => {
  const given = world(VERIFIED, members(WHOLE));
  const before = served(given).pool?.tls?.certificate?.fingerprint;
  given.apply([members({ ...WHOLE, 'tls.crt': API.cert, 'tls.key': API.key })]);
  const after = served(given).pool?.tls;
  t.not(after?.certificate?.fingerprint, before);
  t.is(after?.authority?.name, 'secret default/members');
});

for (const [title, annotations, why] of [
  ['verification without a Secret', { 'proxy-ssl-secret': '' }, /proxy-ssl-secret/],
  ['verification without a name', { 'proxy-ssl-name': '' }, /needs "proxy-ssl-name"/],
  ['a Secret of another namespace', { 'proxy-ssl-secret': 'other/members' }, /of another namespace/],
  ['members without TLS', { 'backend-protocol': 'HTTP' }, /"backend-protocol" is not HTTPS or GRPCS/],
  ['ciphers that are not known', { 'proxy-ssl-ciphers': 'HIGH:!aNULL' }, /proxy-ssl-ciphers/],
  ['another version of TLS', { 'proxy-ssl-protocols': 'TLSv1.1 TLSv1.2' }, /proxy-ssl-protocols/],
] as const)
  test(`An Ingress closes that asks for ${title}`, (t) => {
    const { status, problems } = served(world({ ...VERIFIED, ...annotations }, members(WHOLE)));
    t.is(status, 403);
    t.regex(problems.join(), why);
  });

test('Without the annotation that cannot be given, an Ingress with consent is served', (t) => {
  const given = { ...VERIFIED, 'proxy-ssl-ciphers': 'HIGH' };
  const own = Object.entries(given).map(([name, value]) => [`nginx.ingress.kubernetes.io/${name}`, value]);
  const annotations = { ...Object.fromEntries(own), 'headgate.io/serve-without': 'proxy-ssl-ciphers' };
  const { pool } = served(
    new GatewayWorld([ingressClassJson(), ingressJson('web', {}, annotations), members(WHOLE)]),
  );
  t.is(pool?.members.length, 1);
});

test('A canary whose members are not verified gets no request of an Ingress that verifies its own', (t) => {
  const named = (annotations: Json) =>
    Object.fromEntries(
      Object.entries(annotations).map(([name, value]) => [`nginx.ingress.kubernetes.io/${name}`, value]),
    );
  const poolsWith = (canary: Json) => {
    const next = { canary: 'true', 'canary-weight': '50', 'canary-by-header': 'X-Next', ...canary };
    const given = new GatewayWorld([
      ingressClassJson(),
      ingressJson('web', {}, named(VERIFIED)),
      ingressJson('next', {}, named(next)),
      members(WHOLE),
    ]);
    const { routing } = given.listener(80, 'tcp', KEY);
    const entries = (routing as HttpRouting).sections[0]?.hosts[0]?.entries ?? [];
    const problems = given.loadBalancer(KEY).problems.map(({ message }) => message);
    return { rules: entries.length, problems };
  };
  const less = poolsWith(HTTPS);
  t.is(less.rules, 1);
  t.regex(less.problems.join(), /gets no request of Ingresses of host ".*" that verify members/);
  const same = poolsWith(VERIFIED);
  t.true(same.rules > 1);
  t.deepEqual(same.problems, []);
});

test('A depth holds for the authority of members, and closes where it cannot be limited', (t) => {
  const given = { ...VERIFIED, 'proxy-ssl-verify-depth': '1' };
  t.is(served(world(given, members(WHOLE))).pool?.tls?.authority?.depth, 1);
  const { pool, problems } = served(world(given, members({ ...WHOLE, 'ca.crt': PLAIN })));
  t.deepEqual(pool?.members, []);
  t.regex(problems.join(), /has no basicConstraints/);
});

test('Names, versions and ciphers hold without a Secret; what asks for nothing changes nothing', (t) => {
  const asked = (options: Parameters<typeof proxySslOf>[0]) => proxySslOf(options, 'default').asked;
  t.deepEqual(asked({ ...HTTPS, 'proxy-ssl-name': 'a.example', 'proxy-ssl-verify': 'off' }), {
    secret: '',
    isVerified: false,
    serverName: 'a.example',
  });
  t.is(asked({ 'proxy-ssl-name': 'a.example', 'proxy-ssl-verify': 'off' }), undefined);
  t.is(asked({ ...HTTPS, 'proxy-ssl-ciphers': [], 'proxy-ssl-verify': 'off' }), undefined);
});

test('joinedTls() has the verification of the Service, and the certificate of the Ingress', (t) => {
  const authority = (name: string) => ({ name, fingerprint: 'f' });
  const asked = {
    authority: authority('a'),
    serverName: 'a.example',
    versions: { min: '1.3', max: '1.3' },
  } as const;
  const given = { authority: authority('b'), serverName: 'b.example' };
  t.deepEqual(joinedTls(asked, given), { ...given, versions: asked.versions });
  t.is(joinedTls(asked, { authority: undefined, serverName: '' }), asked);
  t.is(joinedTls(undefined, given), given);
});
