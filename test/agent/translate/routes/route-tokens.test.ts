// Tokens of routes, from annotations and objects with keys to the model: what cannot be had is closed.

import test from 'ava';
import type { HttpRouting, RouteRule } from '../../../../agent/model/routes.ts';
import { GatewayWorld } from '../../../support/values/gateway-world.ts';
import { gatewayJson, ingressClassJson, ingressJson, routeJson } from '../../../support/values/gateways.ts';
import { jwksOf, pemOf, signer } from '../../../support/values/tokens.ts';

const SIGNER = signer('a', 'ES256');
const GATEWAY = gatewayJson('edge', { listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] });
const JWT = '{issuer: https://id.example.org, audiences: shop, keys: configmap/keys, headers: {X-User: sub}}';

function routeWith(jwt: string) {
  const route = routeJson('shop', [{ name: 'edge' }]);
  return { ...route, metadata: { ...(route.metadata as object), annotations: { 'headgate.io/jwt': jwt } } };
}

function object(kind: 'ConfigMap' | 'Secret', data: Readonly<Record<string, string>>) {
  const fields = kind === 'Secret' ? { stringData: data } : { data };
  return { apiVersion: 'v1', kind, metadata: { namespace: 'default', name: 'keys' }, ...fields };
}

const KEYS = object('ConfigMap', { 'jwks.json': jwksOf(SIGNER) });

function ruleOf(world: GatewayWorld, key?: string): RouteRule | undefined {
  const { sections } = world.listener(80, 'tcp', key).routing as HttpRouting;
  return sections.flatMap(({ hosts }) => hosts).flatMap(({ entries }) => entries)[0]?.rule;
}

const keysOf = (world: GatewayWorld, key?: string) =>
  (world.listener(80, 'tcp', key).tokenKeys ?? []).map(
    ({ name, keys }) => `${name}: ${keys.map(({ kid }) => kid).join()}`,
  );

const problemsOf = (world: GatewayWorld, key?: string) =>
  world.loadBalancer(key).problems.map(({ object: of, reason, message }) => `${of} ${reason}: ${message}`);

test('A route wants tokens that the keys of a ConfigMap verify', (t) => {
  const world = new GatewayWorld([GATEWAY, routeWith(JWT), KEYS]);
  t.is(ruleOf(world)?.jwt?.keys, 'configmap default/keys');
  t.deepEqual(keysOf(world), ['configmap default/keys: a']);
  t.deepEqual(problemsOf(world), []);
});

test('An Ingress wants tokens that the keys of a Secret verify', (t) => {
  const rules = [
    {
      host: 'example.org',
      http: {
        paths: [
          { path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } },
        ],
      },
    },
  ];
  const annotations = { 'headgate.io/jwt': JWT.replace('configmap', 'secret') };
  const key = 'ingress:-/edge';
  const world = new GatewayWorld([
    ingressClassJson('edge'),
    ingressJson('shop', { rules }, annotations),
    object('Secret', { 'b.pem': pemOf(SIGNER) }),
  ]);
  t.is(ruleOf(world, key)?.jwt?.keys, 'secret default/keys');
  t.deepEqual([keysOf(world, key), problemsOf(world, key)], [['secret default/keys: b'], []]);
});

test('Without its keys a route is closed, and its author learns why', (t) => {
  const world = new GatewayWorld([
    GATEWAY,
    routeWith(JWT),
    { ...KEYS, metadata: { namespace: 'other', name: 'keys' } },
  ]);
  t.truthy(ruleOf(world)?.jwt);
  t.deepEqual(keysOf(world), []);
  t.deepEqual(problemsOf(world), [
    'HTTPRoute default/shop InvalidKeys: Cannot use ConfigMap "default/keys" for keys of tokens: it does not exist, or has no keys; its requests get status 403',
  ]);
});

test('A broken ConfigMap keeps its last keys, and a deleted one closes', (t) => {
  const world = new GatewayWorld([GATEWAY, routeWith(JWT), KEYS]);
  world.apply([object('ConfigMap', { 'jwks.json': '{' })]);
  t.deepEqual(keysOf(world), ['configmap default/keys: a']);
  t.regex(problemsOf(world).join(), /its JWKS is not JSON; the keys that it had stay/);
  world.apply([object('ConfigMap', { 'jwks.json': jwksOf({ ...SIGNER, kid: 'b' }) })]);
  t.deepEqual([keysOf(world), problemsOf(world)], [['configmap default/keys: b'], []]);
  world.remove('ConfigMap', 'default/keys');
  t.deepEqual(keysOf(world), []);
});

test('An annotation that cannot be read closes the route', (t) => {
  const world = new GatewayWorld([GATEWAY, routeWith(JWT.replace('issuer', 'isuer')), KEYS]);
  t.deepEqual([ruleOf(world)?.jwt?.keys, keysOf(world)], ['', []]);
  t.regex(
    problemsOf(world).join(),
    /InvalidAnnotation: Cannot verify tokens by annotation "headgate.io\/jwt": it has a field "isuer"; .*; its requests get status 403/,
  );
});

test('Keys of a URL that a command does not read are not known, and no problem', (t) => {
  const url = JWT.replace('configmap/keys', '"https://id.example.org/keys"');
  const world = new GatewayWorld([GATEWAY, routeWith(url)]);
  t.is(ruleOf(world)?.jwt?.keys, 'jwks https://id.example.org/keys');
  t.deepEqual([keysOf(world), problemsOf(world)], [['jwks https://id.example.org/keys: '], []]);
});
