// The setting `hostsOfOneNamespace` for routes of a Gateway.

import test from 'ava';
import { GatewayWorld } from '../../../support/values/gateway-world.ts';
import { gatewayJson, routeJson } from '../../../support/values/gateways.ts';

type Json = Readonly<Record<string, unknown>>;

const ACCEPTED = 'Accepted True Accepted';
const REJECTED = 'Accepted False HostnameConflict';

const listener = (name: string, port: number, more: Json = {}): Json => ({
  name,
  port,
  protocol: 'HTTP',
  allowedRoutes: { namespaces: { from: 'All' } },
  ...more,
});
const gateway = (...listeners: readonly Json[]) =>
  gatewayJson('edge', { listeners: listeners.length === 0 ? [listener('http', 80)] : listeners });

/** Created in this second of the first minute. */
function route(
  key: string,
  second: number,
  hostnames: readonly string[],
  more: Json = {},
  kind?: string,
): Json {
  const [namespace = '', name = ''] = key.split('/');
  const json = routeJson(name, [{ name: 'edge', namespace: 'default', ...more }], { hostnames }, kind);
  const creationTimestamp = `2026-01-01T00:00:0${second}Z`;
  const uid = `uid-${namespace}-${name}`;
  return { ...json, metadata: { ...(json.metadata as Json), namespace, creationTimestamp, uid } };
}

const owned = (...objects: readonly Json[]) =>
  new GatewayWorld([gateway(), ...objects], { hostsOfOneNamespace: true });
const accepted = (world: GatewayWorld, key: string, kind?: 'GRPCRoute' | 'TLSRoute') =>
  world.parents(key, kind).map(([first]) => first);
/** Host and route of each rule. */
const served = (world: GatewayWorld, port = 80) =>
  world.routes(port).map((each) => each.replace(/\/ .*Route (.*)#0\)$/, ' $1'));

test('A host belongs to the namespace whose route had it first, whatever the order in which they are seen', (t) => {
  for (const order of [
    [1, 2],
    [2, 1],
  ] as const) {
    const world = owned();
    const both = [route('a/late', 2, ['x.example.org']), route('b/early', 1, ['x.example.org'])];
    for (const at of order) world.apply([both[at - 1] as Json]);
    t.deepEqual(accepted(world, 'b/early'), [ACCEPTED]);
    t.deepEqual(accepted(world, 'a/late'), [REJECTED]);
    t.deepEqual(served(world), ['x.example.org b/early']);
    t.is(world.status('Gateway', 'default/edge').listeners[0]?.attachedRoutes, 1);
    t.deepEqual(
      world.loadBalancer().problems.map(({ object, reason, message }) => [object, reason, message]),
      [
        [
          'HTTPRoute a/late',
          'RouteShadowed',
          'Cannot attach to listener "http": An older route of namespace "b" has host "x.example.org", and each host belongs to one namespace (setting hostsOfOneNamespace)',
        ],
      ],
    );
  }
});

test('Without the setting all namespaces share hosts', (t) => {
  const world = new GatewayWorld([
    gateway(),
    route('a/late', 2, ['x.example.org']),
    route('b/early', 1, ['x.example.org']),
  ]);
  t.deepEqual([accepted(world, 'a/late'), accepted(world, 'b/early')], [[ACCEPTED], [ACCEPTED]]);
});

test('A route is served for the hosts that are left, and its author is told of the others', (t) => {
  const world = owned(
    route('b/early', 1, ['x.example.org']),
    route('a/late', 2, ['x.example.org', 'y.example.org']),
    route('b/other', 3, ['x.example.org', 'y.example.org']),
  );
  t.deepEqual(served(world).toSorted(), [
    'x.example.org b/early',
    'x.example.org b/other',
    'y.example.org a/late',
  ]);
  t.deepEqual(
    ['a/late', 'b/other'].map((key) => accepted(world, key)),
    [[ACCEPTED], [ACCEPTED]],
  );
  t.deepEqual(
    world
      .loadBalancer()
      .problems.filter(({ message }) => message.startsWith('Cannot attach all hosts'))
      .map(({ object }) => object),
    ['HTTPRoute a/late', 'HTTPRoute b/other'],
  );
});

test('A host is the same on all listeners of a Gateway, and for routes without hosts that of the listener', (t) => {
  const hostname = 'x.example.org';
  const world = owned(
    gateway(listener('one', 80), listener('two', 81, { hostname })),
    route('b/early', 1, [hostname], { sectionName: 'one' }),
    route('a/late', 2, [], { sectionName: 'two' }),
  );
  t.deepEqual(accepted(world, 'a/late'), [REJECTED]);
  t.deepEqual(served(world, 80), ['x.example.org b/early']);
  t.deepEqual(served(world, 81), []);
});

test('A wildcard and a host below it are two hosts, and a GRPCRoute owns hosts, too', (t) => {
  const world = owned(
    route('a/wild', 1, ['*.example.org']),
    route('b/below', 2, ['x.example.org']),
    route('a/grpc', 3, ['y.example.com'], {}, 'GRPCRoute'),
    route('b/http', 4, ['y.example.com']),
  );
  t.deepEqual(accepted(world, 'b/below'), [ACCEPTED]);
  t.deepEqual(accepted(world, 'a/grpc', 'GRPCRoute'), [ACCEPTED]);
  t.deepEqual(accepted(world, 'b/http'), [REJECTED]);
  t.regex(
    world.loadBalancer().problems.find(({ object }) => object === 'HTTPRoute b/http')?.message ?? '',
    /setting hostsOfOneNamespace/,
  );
});

test('A TLSRoute owns its hosts', (t) => {
  const tls = { protocol: 'TLS', tls: { mode: 'Passthrough' } };
  const world = owned(
    gateway(listener('tls', 443, tls)),
    route('b/early', 1, ['x.example.org'], {}, 'TLSRoute'),
    route('a/late', 2, ['x.example.org', 'y.example.org'], {}, 'TLSRoute'),
    route('c/late', 3, ['x.example.org'], {}, 'TLSRoute'),
  );
  t.deepEqual(
    ['b/early', 'a/late', 'c/late'].map((key) => accepted(world, key, 'TLSRoute')),
    [[ACCEPTED], [ACCEPTED], [REJECTED]],
  );
});

test('A host is free again when its routes are gone, and others of the Gateway keep their values', (t) => {
  const world = owned(
    route('b/early', 1, ['x.example.org']),
    route('a/late', 2, ['x.example.org']),
    route('a/other', 3, ['z.example.org']),
  );
  const status = world.status('HTTPRoute', 'a/late');
  const other = world.status('HTTPRoute', 'a/other');
  world.apply([route('b/more', 4, ['w.example.org'])]);
  t.is(world.status('HTTPRoute', 'a/late'), status, 'nothing of it has changed');
  t.is(world.status('HTTPRoute', 'a/other'), other);
  world.remove('HTTPRoute', 'b/early');
  t.deepEqual(accepted(world, 'a/late'), [ACCEPTED]);
  t.deepEqual(
    served(world).filter((each) => each.startsWith('x.')),
    ['x.example.org a/late'],
  );
  t.deepEqual(world.loadBalancer().problems, []);
});
