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
/** The problems, but for those of Services, which these worlds do not have. */
const withoutBackends = (world: GatewayWorld) =>
  world.loadBalancer().problems.filter(({ message }) => !message.includes('(BackendNotFound)'));
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
      withoutBackends(world).map(({ object, reason, message }) => [object, reason, message]),
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
    withoutBackends(world).find(({ object }) => object === 'HTTPRoute b/http')?.message ?? '',
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
  t.deepEqual(withoutBackends(world), []);
});

function setJson(key: string, second: number, listeners: readonly Json[]): Json {
  const [namespace = '', name = ''] = key.split('/');
  const creationTimestamp = `2026-01-01T00:00:0${second}Z`;
  return {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'ListenerSet',
    metadata: { namespace, name, uid: `uid-${name}`, generation: 1, creationTimestamp },
    spec: { parentRef: { name: 'edge', namespace: 'default' }, listeners },
  };
}

const withSets = (...objects: readonly Json[]) =>
  new GatewayWorld(
    [
      gatewayJson('edge', {
        listeners: [listener('http', 80)],
        allowedListeners: { namespaces: { from: 'All' } },
      }),
      ...objects,
    ],
    { hostsOfOneNamespace: true },
  );

const doors: readonly (readonly [
  host: string,
  what: string,
  port: number,
  hostname: string,
  taken: boolean,
])[] = [
  ['x.example.org', 'its host', 80, 'x.example.org', true],
  ['x.example.org', 'its host on another port', 81, 'x.example.org', true],
  ['x.example.org', 'a wildcard over its host', 80, '*.example.org', true],
  ['*.example.org', 'its wildcard', 80, '*.example.org', true],
  ['*.example.org', 'a host below its wildcard', 80, 'x.example.org', false],
  ['x.example.org', 'another host', 80, 'y.example.org', false],
];
for (const [host, what, port, hostname, taken] of doors)
  test(`A ListenerSet of another namespace with ${what} (${host}) ${taken ? 'gets none' : 'is served'}`, (t) => {
    const parent = { kind: 'ListenerSet', name: 'extra', namespace: 'b' };
    const world = withSets(
      route('a/owner', 1, [host]),
      setJson('b/extra', 2, [listener('more', port, { hostname })]),
      route('b/thief', 3, [], parent),
    );
    const { conditions } = world.listenerStatus('more', 'ListenerSet b/extra');
    const [first] = conditions.map(({ type, status, reason }) => `${type} ${status} ${reason}`);
    t.is(first, taken ? REJECTED : ACCEPTED);
    t.is(conditions.find(({ type }) => type === 'Conflicted')?.status, taken ? 'True' : 'False');
    t.deepEqual(accepted(world, 'b/thief'), [taken ? REJECTED : ACCEPTED]);
    t.true(served(world).includes(`${host} a/owner`));
    t.is(
      world.loadBalancer().problems.some(({ message }) => /"b\/extra\/more".*setting hosts/.test(message)),
      taken,
    );
  });

test('An older ListenerSet keeps its host, its own routes count for it, and without the owner it gets the host', (t) => {
  const parent = { kind: 'ListenerSet', name: 'extra', namespace: 'b' };
  const extra = listener('more', 80, { hostname: '*.example.org' });
  const state = (world: GatewayWorld) =>
    world.listenerStatus('more', 'ListenerSet b/extra').conditions[0]?.status;
  const older = withSets(setJson('b/extra', 1, [extra]), route('a/owner', 2, ['x.example.org']));
  t.is(state(older), 'True');
  const guest = withSets(route('a/guest', 1, ['x.example.org'], parent), setJson('b/extra', 2, [extra]));
  t.is(state(guest), 'True');
  const world = withSets(route('a/owner', 1, ['x.example.org']), setJson('b/extra', 2, [extra]));
  t.is(state(world), 'False');
  world.remove('HTTPRoute', 'a/owner');
  t.is(state(world), 'True');
});

test('What the routes of a host do not match gets no route of another namespace for a wider host', (t) => {
  const path = (type: string, value: string) => ({
    rules: [{ matches: [{ path: { type, value } }], backendRefs: [{ name: 'web', port: 80 }] }],
  });
  const withPath = (json: Json, more: Json): Json => ({ ...json, spec: { ...(json.spec as Json), ...more } });
  const objects = [
    withPath(route('a/owner', 1, ['x.example.org', 'deep.y.example.org']), path('PathPrefix', '/shop')),
    withPath(route('a/more', 2, ['x.example.org']), path('PathPrefix', '/')),
    withPath(route('b/wild', 3, ['*.example.org']), path('RegularExpression', '/.*')),
    route('a/any', 4, []),
    route('b/own', 5, ['z.example.org']),
  ];
  const texts = (settings: Json) =>
    new GatewayWorld([gateway(), ...objects], settings)
      .routes(80)
      .map((each) => each.replace(/ → .* \(/, ' ('));
  t.deepEqual(texts({ hostsOfOneNamespace: true }).toSorted(), [
    '*.example.org/ (HTTPRoute b/wild#404)',
    '*.example.org~/.* (HTTPRoute b/wild#0)',
    '*/ (HTTPRoute a/any#0)',
    'deep.y.example.org/ (HTTPRoute a/owner#404)',
    'deep.y.example.org/shop (HTTPRoute a/owner#0)',
    'x.example.org/ (HTTPRoute a/more#0)',
    'x.example.org/ (HTTPRoute a/owner#404)',
    'x.example.org/shop (HTTPRoute a/owner#0)',
    'z.example.org/ (HTTPRoute b/own#0)',
  ]);
  t.false(texts({}).some((each) => each.includes('#404')));
  const world = new GatewayWorld([gateway(), ...objects], { hostsOfOneNamespace: true });
  t.deepEqual(withoutBackends(world), [], 'the end of a host is no match of an author');
});

test('A GRPCRoute of another namespace takes no HTTPRoute off its hosts, older or not, by a wildcard or for all hosts', (t) => {
  for (const hosts of [['*.example.org'], []]) {
    const objects = [
      route('b/grpc', 1, hosts, {}, 'GRPCRoute'),
      route('a/http', 2, ['x.example.org']),
      route('b/http', 3, ['y.example.org']),
    ];
    const world = owned(...objects);
    t.deepEqual(accepted(world, 'b/grpc', 'GRPCRoute'), [ACCEPTED]);
    t.deepEqual(accepted(world, 'a/http'), [ACCEPTED]);
    t.deepEqual(accepted(world, 'b/http'), [REJECTED], 'within a namespace only one kind is accepted');
    const shared = new GatewayWorld([gateway(), ...objects]);
    t.deepEqual(accepted(shared, 'a/http'), [REJECTED]);
  }
  const same = owned(
    route('b/grpc', 1, ['x.example.org'], {}, 'GRPCRoute'),
    route('a/http', 2, ['x.example.org']),
  );
  t.deepEqual(accepted(same, 'a/http'), [REJECTED], 'the host is of the older one');
});

test('A newer regular expression of another namespace gets nothing of a host with an older prefix', (t) => {
  const json = route('b/late', 2, ['x.example.org']);
  const rules = [
    {
      matches: [{ path: { type: 'RegularExpression', value: '/.*' } }],
      backendRefs: [{ name: 'web', port: 80 }],
    },
  ];
  const world = owned(route('a/early', 1, ['x.example.org']), {
    ...json,
    spec: { ...(json.spec as Json), rules },
  });
  t.deepEqual(served(world), ['x.example.org a/early']);
  t.deepEqual(accepted(world, 'b/late'), [REJECTED]);
});
