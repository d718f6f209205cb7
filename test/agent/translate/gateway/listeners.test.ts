// Listeners of Gateways and their statuses; the titles are sentences of the specification of Gateway and its conditions
// (https://gateway-api.sigs.k8s.io/reference/spec/#gateway).

import test from 'ava';
import { API, configMap, secret } from '../../../support/values/certificates.ts';
import { conditionTexts, GatewayWorld } from '../../../support/values/gateway-world.ts';
import { gatewayJson, routeJson } from '../../../support/values/gateways.ts';

type Json = Readonly<Record<string, unknown>>;

const GROUP = 'gateway.networking.k8s.io';
const tls = (...names: string[]) => ({ tls: { certificateRefs: names.map((name) => ({ name })) } });
const http = (name: string, more: Json = {}) => ({ name, port: 80, protocol: 'HTTP', ...more });
const https = (name: string, more: Json = {}) => ({
  name,
  port: 443,
  protocol: 'HTTPS',
  ...tls('web-tls'),
  ...more,
});
const passthrough = { tls: { mode: 'Passthrough' } };

function worldOf(listeners: readonly Json[], objects: readonly Json[] = [], spec: Json = {}): GatewayWorld {
  return new GatewayWorld([
    gatewayJson('edge', { listeners, ...spec }),
    secret('web-tls'),
    secret('api-tls', API),
    configMap('clients'),
    ...objects,
  ]);
}

/** `Accepted`, `Programmed`, `ResolvedRefs` and `Conflicted` as far as they are not as of a good listener. */
function faultsOf(world: GatewayWorld, name: string, object?: string): readonly string[] {
  const good = ['Accepted True Accepted', 'ResolvedRefs True ResolvedRefs', 'Conflicted False NoConflicts'];
  return conditionTexts(world.listenerStatus(name, object).conditions).filter((each) => !good.includes(each));
}

function gatewayConditions(world: GatewayWorld): readonly string[] {
  return conditionTexts(world.status('Gateway', 'default/edge').conditions);
}

test('A good Gateway is accepted, and programmed if its listeners are served', (t) => {
  const world = worldOf([http('http'), https('https')]);
  t.deepEqual(gatewayConditions(world), ['Accepted True Accepted', 'ResolvedRefs True ResolvedRefs']);
  const status = world.status('Gateway', 'default/edge');
  t.deepEqual(status.programmedBy, ['gateway:default:edge:tcp:80:v4', 'gateway:default:edge:tcp:443:v4']);
  t.deepEqual(status.addresses, ['192.0.2.10']);
  t.is(status.generation, 1);
  const listener = world.listenerStatus('https');
  t.deepEqual(listener.programmedBy, ['gateway:default:edge:tcp:443:v4']);
  t.deepEqual(faultsOf(world, 'https'), []);
});

// `supportedKinds` by protocol and by `allowedRoutes.kinds`.
const KINDS: readonly (readonly [listener: Json, kinds: readonly string[], fault: string | undefined])[] = [
  [http('x'), ['HTTPRoute', 'GRPCRoute'], undefined],
  [https('x'), ['HTTPRoute', 'GRPCRoute'], undefined],
  [{ name: 'x', port: 443, protocol: 'TLS', ...passthrough }, ['TLSRoute'], undefined],
  [{ name: 'x', port: 443, protocol: 'TLS', ...tls('web-tls') }, ['TLSRoute'], undefined],
  [{ name: 'x', port: 53, protocol: 'TCP' }, ['TCPRoute'], undefined],
  [{ name: 'x', port: 53, protocol: 'UDP' }, ['UDPRoute'], undefined],
  [http('x', { allowedRoutes: { kinds: [{ kind: 'HTTPRoute' }] } }), ['HTTPRoute'], undefined],
  [
    http('x', { allowedRoutes: { kinds: [{ kind: 'HTTPRoute' }, { kind: 'Other' }] } }),
    ['HTTPRoute'],
    'InvalidRouteKinds',
  ],
  [http('x', { allowedRoutes: { kinds: [{ kind: 'TCPRoute' }] } }), [], 'InvalidRouteKinds'],
  [http('x', { allowedRoutes: { kinds: [{ group: 'x.org', kind: 'HTTPRoute' }] } }), [], 'InvalidRouteKinds'],
];

for (const [listener, kinds, fault] of KINDS)
  test(`A listener of ${JSON.stringify(listener)} supports ${kinds.join(', ') || 'no kind'}`, (t) => {
    const world = worldOf([listener]);
    const status = world.listenerStatus('x');
    t.deepEqual(
      status.supportedKinds,
      kinds.map((kind) => ({ group: GROUP, kind })),
    );
    t.deepEqual(faultsOf(world, 'x'), fault === undefined ? [] : [`ResolvedRefs False ${fault}`]);
  });

test('A listener of an unknown protocol is not accepted, supports no kind, and costs only itself', (t) => {
  const world = worldOf([http('http'), { name: 'x', port: 81, protocol: 'example.org/Foo' }]);
  t.deepEqual(faultsOf(world, 'x'), ['Accepted False UnsupportedProtocol', 'Programmed False Invalid']);
  t.deepEqual(world.listenerStatus('x').supportedKinds, []);
  t.is(gatewayConditions(world)[0], 'Accepted True ListenersNotValid');
  t.deepEqual(
    world.loadBalancer().listeners.map(({ port }) => port),
    [80],
  );
});

test('A Gateway without a valid listener is not accepted, and not programmed', (t) => {
  const world = worldOf([{ name: 'x', port: 81, protocol: 'Foo' }]);
  t.deepEqual(gatewayConditions(world), [
    'Accepted False ListenersNotValid',
    'Programmed False Invalid',
    'ResolvedRefs True ResolvedRefs',
  ]);
  t.deepEqual(world.status('Gateway', 'default/edge').programmedBy, []);
});

// Listeners on one port that cannot be told apart: all are conflicted.
const CONFLICTS: readonly (readonly [title: string, a: Json, b: Json, reason: string])[] = [
  ['HTTP listeners with one host', http('a'), http('b'), 'HostnameConflict'],
  [
    'HTTPS listeners with one host',
    https('a', { hostname: 'a.org' }),
    https('b', { hostname: 'a.org' }),
    'HostnameConflict',
  ],
  ['HTTP and TCP', http('a'), { name: 'b', port: 80, protocol: 'TCP' }, 'ProtocolConflict'],
  ['HTTP and HTTPS', http('a', { port: 443 }), https('b', { hostname: 'a.org' }), 'ProtocolConflict'],
  [
    'HTTPS and TLS that is ended',
    https('a', { hostname: 'a.org' }),
    { name: 'b', port: 443, protocol: 'TLS', hostname: 'b.org', ...tls('web-tls') },
    'ProtocolConflict',
  ],
  [
    'TLS that is ended and TLS that is passed through, of one host,',
    { name: 'a', port: 443, protocol: 'TLS', hostname: 'a.org', ...tls('web-tls') },
    { name: 'b', port: 443, protocol: 'TLS', hostname: 'a.org', ...passthrough },
    'ProtocolConflict',
  ],
];

for (const [title, a, b, reason] of CONFLICTS)
  test(`Of ${title} on a port none wins: both are conflicted, and others are served`, (t) => {
    const world = worldOf([a, b, http('good', { port: 8080 })]);
    const expected = [`Accepted False ${reason}`, `Programmed False ${reason}`, `Conflicted True ${reason}`];
    t.deepEqual(faultsOf(world, 'a'), expected);
    t.deepEqual(faultsOf(world, 'b'), expected);
    t.deepEqual(faultsOf(world, 'good'), []);
    t.is(gatewayConditions(world)[0], 'Accepted True ListenersNotValid');
    t.deepEqual(
      world.loadBalancer().listeners.map(({ port }) => port),
      [8080],
    );
  });

test('Listeners with different hosts, ports or transport protocols are distinct', (t) => {
  const world = worldOf([
    http('any'),
    http('wild', { hostname: '*.a.org' }),
    http('host', { hostname: 'b.a.org' }),
    http('port', { port: 8080 }),
    { name: 'tcp', port: 53, protocol: 'TCP' },
    { name: 'udp', port: 53, protocol: 'UDP' },
  ]);
  for (const name of ['any', 'wild', 'host', 'port', 'tcp', 'udp'])
    t.deepEqual(faultsOf(world, name), [], name);
});

test('On one port TLS of some hosts can be passed through, and that of others ended', (t) => {
  const listeners = [
    https('https', { hostname: 'a.org' }),
    { name: 'tls', port: 443, protocol: 'TLS', hostname: '*.b.org', ...passthrough },
  ];
  const routes = [
    routeJson('web', [{ name: 'edge' }]),
    routeJson('raw', [{ name: 'edge' }], { hostnames: ['x.b.org'] }, 'TLSRoute'),
  ];
  const world = worldOf(listeners, routes);
  t.deepEqual(
    ['https', 'tls'].map((name) => faultsOf(world, name)),
    [[], []],
  );
  const { routing, dispatch, tls: ended, mode } = world.listener(443);
  t.is(routing?.kind, 'http');
  t.is(mode, 'http');
  t.is(ended?.certificates.length, 1);
  t.deepEqual(
    dispatch?.hosts.map(({ host, isEnded, backends }) => [host.suffix, isEnded ?? false, backends.length]),
    [
      ['x.b.org', false, 1],
      ['b.org', false, 0],
      ['a.org', true, 0],
    ],
  );
});

test('A Gateway that is closed passes no TLS through either, on a port of its own or beside other TLS', (t) => {
  const raw = { name: 'tls', port: 443, protocol: 'TLS', hostname: '*.b.org', ...passthrough };
  const annotations = { 'headgate.io/whitelist-source-range': '10.0.0.0/8' };
  const worldWith = (listeners: readonly Json[]) =>
    new GatewayWorld([
      gatewayJson('edge', { listeners }, { annotations }),
      secret('web-tls'),
      routeJson('raw', [{ name: 'edge' }], { hostnames: ['x.b.org'] }, 'TLSRoute'),
    ]);
  const { dispatch } = worldWith([https('https', { hostname: 'a.org' }), raw]).listener(443);
  t.deepEqual(
    dispatch?.hosts.map(({ backends }) => backends.length),
    [0, 0, 0],
  );
  t.deepEqual(worldWith([raw]).listener(443).allowedCidrs, []);
});

test('OverlappingTLSConfig is set on all TLS listeners with overlapping hosts, and on no other', (t) => {
  const world = worldOf([
    https('a', { hostname: 'foo.example.com' }),
    https('b', { hostname: 'foo.example.org' }),
    https('c', { hostname: '*.example.com' }),
    https('d', { hostname: 'bar.example.com', port: 8443 }),
  ]);
  const overlap = 'OverlappingTLSConfig True OverlappingHostnames';
  t.deepEqual(
    ['a', 'b', 'c', 'd'].map((name) => faultsOf(world, name)),
    [[overlap], [], [overlap], []],
  );
});

// A certificate that cannot be used.
const CERTIFICATES: readonly (readonly [title: string, reference: Json, reason: string])[] = [
  ['A Secret that does not exist', { name: 'gone' }, 'InvalidCertificateRef'],
  ['A reference to another kind', { kind: 'ConfigMap', name: 'web-tls' }, 'InvalidCertificateRef'],
  ['A reference to another group', { group: 'x.org', name: 'web-tls' }, 'InvalidCertificateRef'],
  [
    'A Secret of another namespace without a grant',
    { name: 'web-tls', namespace: 'shop' },
    'RefNotPermitted',
  ],
];

for (const [title, reference, reason] of CERTIFICATES) {
  test(`${title} is ${reason}, and the listener is not programmed while its routes count`, (t) => {
    const world = worldOf(
      [https('https', { tls: { certificateRefs: [reference] } }), http('http')],
      [routeJson('api', [{ name: 'edge', sectionName: 'https' }])],
    );
    t.deepEqual(faultsOf(world, 'https'), ['Programmed False Invalid', `ResolvedRefs False ${reason}`]);
    t.is(world.listenerStatus('https').attachedRoutes, 1);
    t.is(gatewayConditions(world).at(-1), 'ResolvedRefs False ListenersNotResolved');
    t.deepEqual(
      world.loadBalancer().listeners.map(({ port }) => port),
      [80],
    );
  });
  test(`${title} is ${reason}, and the other certificates of the listener are served`, (t) => {
    const references = { tls: { certificateRefs: [reference, { name: 'web-tls' }] } };
    const world = worldOf([https('https', references)]);
    t.deepEqual(faultsOf(world, 'https'), [`ResolvedRefs False ${reason}`]);
    t.deepEqual(
      world.listener(443).tls?.certificates.map(({ name }) => name),
      ['default/web-tls'],
    );
  });
}

for (const [title, reference, reason] of CERTIFICATES)
  test(`${title} for members is a fault of the Gateway, whose members get none`, (t) => {
    const tls = { backend: { clientCertificateRef: reference } };
    const world = new GatewayWorld([gatewayJson('edge', { tls }), routeJson('api', [{ name: 'edge' }])]);
    const expected = reason === 'RefNotPermitted' ? reason : 'InvalidClientCertificateRef';
    t.is(gatewayConditions(world).at(-1), `ResolvedRefs False ${expected}`);
    t.is(gatewayConditions(world)[0], 'Accepted True Accepted');
    t.is(world.loadBalancer().problems[0]?.reason, 'InvalidCertificate');
    t.deepEqual(world.routes(), ['*/ → web:tcp:80:v4*1 (HTTPRoute default/api#0)']);
  });

test('A ReferenceGrant permits a Gateway to use a Secret of another namespace', (t) => {
  const world = worldOf([
    https('https', { tls: { certificateRefs: [{ name: 'web-tls', namespace: 'shop' }] } }),
  ]);
  world.apply([secret('web-tls', API, 'shop')]);
  t.deepEqual(faultsOf(world, 'https'), ['Programmed False Invalid', 'ResolvedRefs False RefNotPermitted']);
  world.apply([
    {
      apiVersion: `${GROUP}/v1`,
      kind: 'ReferenceGrant',
      metadata: { name: 'gateways', namespace: 'shop' },
      spec: {
        from: [{ group: GROUP, kind: 'Gateway', namespace: 'default' }],
        to: [{ group: '', kind: 'Secret', name: 'web-tls' }],
      },
    },
  ]);
  t.deepEqual(faultsOf(world, 'https'), []);
  t.deepEqual(
    world.listener(443).tls?.certificates.map(({ name }) => name),
    ['shop/web-tls'],
  );
});

test('A certificate whose Secret goes stays in use, and the listener says so', (t) => {
  const world = worldOf([https('https')]);
  world.remove('Secret', 'default/web-tls');
  t.deepEqual(faultsOf(world, 'https'), ['ResolvedRefs False InvalidCertificateRef']);
  t.is(world.listener(443).tls?.certificates.length, 1);
});

test('A client gets the certificates of the listener that its name belongs to, and by default those of the listener for all names', (t) => {
  const world = worldOf([https('host', { hostname: 'api.example', ...tls('api-tls') }), https('any')]);
  const { tls: found } = world.listener(443);
  t.deepEqual(
    found?.certificates.map(({ name }) => name),
    ['default/web-tls'],
  );
  t.deepEqual(
    found?.sections?.map(({ hostname, certificates }) => [hostname.suffix, certificates[0]?.name]),
    [['api.example', 'default/api-tls']],
  );
  t.deepEqual(found?.alpn, ['h2', 'http/1.1']);
});

const clients = (name: string, more: Json = {}) => ({
  validation: { caCertificateRefs: [{ group: '', kind: 'ConfigMap', name, ...more }] },
});

test('Client certificates are asked for by the default of the Gateway, or otherwise on a port', (t) => {
  const frontend = { default: clients('clients'), perPort: [{ port: 8443, tls: {} }] };
  const world = worldOf([https('a'), https('b', { port: 8443 })], [], { tls: { frontend } });
  t.like(world.listener(443).tls, {
    clients: { verify: 'required', authority: { name: 'configmap default/clients' } },
  });
  t.is(world.listener(8443).tls?.clients, undefined);
});

test('A name that belongs to no listener is no way around a client certificate', (t) => {
  const frontend = { default: clients('clients') };
  const world = worldOf([https('a', { hostname: 'a.example' })], [], { tls: { frontend } });
  t.is(world.listener(443).tls?.clients?.verify, 'required');
});

// Authorities for client certificates that cannot be used.
const AUTHORITIES: readonly (readonly [title: string, frontend: Json, reason: string])[] = [
  ['An authority that does not exist', clients('gone'), 'InvalidCACertificateRef'],
  ['An authority of another kind', clients('x', { kind: 'Service' }), 'InvalidCACertificateKind'],
  ['An authority of another namespace', clients('clients', { namespace: 'shop' }), 'RefNotPermitted'],
];

for (const [title, validation, reason] of AUTHORITIES)
  test(`${title} is ${reason}: its HTTPS listener is not accepted, and HTTP listeners are unaffected`, (t) => {
    const world = worldOf([https('https'), http('http')], [], { tls: { frontend: { default: validation } } });
    t.deepEqual(faultsOf(world, 'https'), [
      'Accepted False NoValidCACertificate',
      'Programmed False Invalid',
      `ResolvedRefs False ${reason}`,
    ]);
    t.deepEqual(faultsOf(world, 'http'), []);
  });

test('AllowInsecureFallback accepts any certificate, or none, and is a condition of the Gateway', (t) => {
  const { validation } = clients('clients');
  const frontend = { default: { validation: { ...validation, mode: 'AllowInsecureFallback' } } };
  const world = worldOf([https('https')], [], { tls: { frontend } });
  t.is(world.listener(443).tls?.clients?.verify, 'ignored');
  t.is(gatewayConditions(world).at(-1), 'InsecureFrontendValidationMode True ConfigurationChanged');
});

// `spec.addresses`; every Gateway of these tests gets 192.0.2.10 from its pool.
const ADDRESSES: readonly (readonly [
  title: string,
  addresses: readonly Json[],
  conditions: readonly string[],
])[] = [
  [
    'one of a type that is not supported',
    [{ type: 'Hostname', value: 'a.org' }],
    ['Accepted False UnsupportedAddress', 'Programmed False Invalid'],
  ],
  [
    'one that cannot be had',
    [{ value: '192.0.2.99' }],
    ['Accepted True Accepted', 'Programmed False AddressNotUsable'],
  ],
  ['the one that it has', [{ value: '192.0.2.10' }], ['Accepted True Accepted']],
  ['one without a value', [{ type: 'IPAddress' }], ['Accepted True Accepted']],
];

for (const [title, addresses, conditions] of ADDRESSES)
  test(`A Gateway that asks for ${title} is ${conditions.join(', ')}`, (t) => {
    const world = worldOf([http('http')], [], { addresses });
    t.deepEqual(gatewayConditions(world), [...conditions, 'ResolvedRefs True ResolvedRefs']);
  });

test('spec.infrastructure.parametersRef is not supported: the Gateway is not accepted, and not served', (t) => {
  const parametersRef = { group: 'x.org', kind: 'Y', name: 'z' };
  const world = worldOf([http('http')], [], { infrastructure: { parametersRef } });
  t.is(gatewayConditions(world)[0], 'Accepted False InvalidParameters');
  t.deepEqual(world.loadBalancer().listeners, []);
});

// Which routes attach: the condition `Accepted` of the route, and how many routes the listener has.
const ATTACHMENTS: readonly (readonly [
  title: string,
  listener: Json,
  reference: Json,
  spec: Json,
  accepted: string,
])[] = [
  ['no section', {}, {}, {}, 'True Accepted'],
  ['the name of a listener', {}, { sectionName: 'http' }, {}, 'True Accepted'],
  ['the port of a listener', {}, { port: 80 }, {}, 'True Accepted'],
  ['a name that no listener has', {}, { sectionName: 'other' }, {}, 'False NoMatchingParent'],
  ['a port that no listener has', {}, { port: 81 }, {}, 'False NoMatchingParent'],
  [
    'a name and the port of another listener',
    {},
    { sectionName: 'http', port: 81 },
    {},
    'False NoMatchingParent',
  ],
  ['hostnames of the listener', { hostname: '*.a.org' }, {}, { hostnames: ['b.a.org'] }, 'True Accepted'],
  [
    'no hostname of the listener',
    { hostname: '*.a.org' },
    {},
    { hostnames: ['b.org'] },
    'False NoMatchingListenerHostname',
  ],
  [
    'a kind that the listener does not allow',
    { allowedRoutes: { kinds: [{ kind: 'GRPCRoute' }] } },
    {},
    {},
    'False NotAllowedByListeners',
  ],
];

for (const [title, listener, reference, spec, accepted] of ATTACHMENTS)
  test(`A route with ${title} is ${accepted}`, (t) => {
    const world = worldOf(
      [http('http', listener)],
      [routeJson('api', [{ name: 'edge', ...reference }], spec)],
    );
    t.is(world.parents()[0]?.[0], `Accepted ${accepted}`);
    t.is(world.listenerStatus('http').attachedRoutes, accepted.startsWith('True') ? 1 : 0);
    const [parent] = world.status('HTTPRoute', 'default/api').parents;
    t.deepEqual(parent?.ref, { group: GROUP, kind: 'Gateway', name: 'edge', ...reference });
  });

test('ResolvedRefs of a route is judged for itself, also if the route is not accepted', (t) => {
  const world = worldOf([http('http')], [routeJson('api', [{ name: 'edge', sectionName: 'other' }])]);
  t.deepEqual(world.parents(), [['Accepted False NoMatchingParent', 'ResolvedRefs True ResolvedRefs']]);
});

test('A route has one entry for each of its references, and counts once on a listener', (t) => {
  const parents = [{ name: 'edge', sectionName: 'http' }, { name: 'edge', port: 80 }, { name: 'other' }];
  const world = worldOf([http('http')], [routeJson('api', parents)]);
  t.deepEqual(world.parents(), [
    ['Accepted True Accepted', 'ResolvedRefs True ResolvedRefs'],
    ['Accepted True Accepted', 'ResolvedRefs True ResolvedRefs'],
  ]);
  t.is(world.listenerStatus('http').attachedRoutes, 1);
});

test('A listener takes routes of its own namespace, of all, or of those with certain labels', (t) => {
  const route = routeJson('api', [{ name: 'edge', namespace: 'default' }]);
  const ofShop = { ...route, metadata: { namespace: 'shop', name: 'api', uid: 'u', generation: 1 } };
  const from = (namespaces: Json) => worldOf([http('http', { allowedRoutes: { namespaces } })], [ofShop]);
  const accepted = (world: GatewayWorld) => world.parents('shop/api')[0]?.[0];
  t.is(accepted(from({ from: 'Same' })), 'Accepted False NotAllowedByListeners');
  t.is(accepted(from({ from: 'All' })), 'Accepted True Accepted');
  const world = from({ from: 'Selector', selector: { matchLabels: { team: 'a' } } });
  t.is(accepted(world), 'Accepted False NotAllowedByListeners');
  const namespace = (team: string) => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'shop', labels: { team } },
  });
  world.apply([namespace('a')]);
  t.is(accepted(world), 'Accepted True Accepted');
  world.apply([namespace('b')]);
  t.is(accepted(world), 'Accepted False NotAllowedByListeners');
});

function setJson(name: string, listeners: readonly Json[], metadata: Json = {}): Json {
  return {
    apiVersion: `${GROUP}/v1`,
    kind: 'ListenerSet',
    metadata: { namespace: 'default', name, uid: `uid-${name}`, generation: 3, ...metadata },
    spec: { parentRef: { name: 'edge', namespace: 'default' }, listeners },
  };
}

const ALLOWED = { allowedListeners: { namespaces: { from: 'Same' } } };

test('A Gateway allows no ListenerSets unless it says so', (t) => {
  const world = worldOf([http('http')], [setJson('extra', [http('more', { port: 8080 })])]);
  t.deepEqual(conditionTexts(world.status('ListenerSet', 'default/extra').conditions), [
    'Accepted False NotAllowed',
    'Programmed False NotAllowed',
  ]);
  t.is(world.status('Gateway', 'default/edge').attachedListenerSets, 0);
  t.deepEqual(
    world.loadBalancer().listeners.map(({ port }) => port),
    [80],
  );
});

test('The listeners of a ListenerSet belong to the Gateway, and routes attach to either', (t) => {
  const parents = [{ kind: 'ListenerSet', name: 'extra', sectionName: 'http' }];
  const world = worldOf(
    [http('http')],
    [setJson('extra', [http('http', { hostname: 'a.org' })]), routeJson('api', parents)],
    ALLOWED,
  );
  t.is(world.status('Gateway', 'default/edge').attachedListenerSets, 1);
  t.deepEqual(conditionTexts(world.status('ListenerSet', 'default/extra').conditions), [
    'Accepted True Accepted',
  ]);
  t.is(world.status('ListenerSet', 'default/extra').generation, 3);
  t.deepEqual(world.routes(80, 'http'), []);
  t.deepEqual(world.routes(80, 'default/extra/http'), ['a.org/ → web:tcp:80:v4*1 (HTTPRoute default/api#0)']);
  t.is(world.listenerStatus('http').attachedRoutes, 0);
  t.is(world.listenerStatus('http', 'ListenerSet default/extra').attachedRoutes, 1);
});

test('A listener of the Gateway wins over one of a ListenerSet, and the older ListenerSet over the younger', (t) => {
  const time = (second: number) => ({ creationTimestamp: `2026-01-01T00:00:0${second}Z` });
  const world = worldOf(
    [http('http', { hostname: 'gateway.org' })],
    [
      setJson(
        'younger',
        [http('a', { hostname: 'older.org' }), http('good', { hostname: 'c.org' })],
        time(2),
      ),
      setJson(
        'older',
        [
          http('a', { hostname: 'older.org' }),
          http('b', { hostname: 'gateway.org' }),
          { name: 'c', port: 80, protocol: 'TCP' },
        ],
        time(1),
      ),
      setJson('loser', [http('b', { port: 80, protocol: 'TCP' })], time(3)),
    ],
    ALLOWED,
  );
  const conflicted = (reason: string) => [
    `Accepted False ${reason}`,
    `Programmed False ${reason}`,
    `Conflicted True ${reason}`,
  ];
  t.deepEqual(faultsOf(world, 'http'), []);
  t.deepEqual(faultsOf(world, 'a', 'ListenerSet default/older'), []);
  t.deepEqual(faultsOf(world, 'b', 'ListenerSet default/older'), conflicted('HostnameConflict'));
  t.deepEqual(faultsOf(world, 'c', 'ListenerSet default/older'), conflicted('ProtocolConflict'));
  t.deepEqual(faultsOf(world, 'a', 'ListenerSet default/younger'), conflicted('HostnameConflict'));
  t.deepEqual(faultsOf(world, 'b', 'ListenerSet default/loser'), conflicted('ProtocolConflict'));
  t.deepEqual(conditionTexts(world.status('ListenerSet', 'default/loser').conditions), [
    'Accepted False ListenersNotValid',
    'Programmed False ListenersNotValid',
  ]);
  t.is(world.status('Gateway', 'default/edge').attachedListenerSets, 2);
});

test('A Gateway whose port another owner holds has a listener that is not accepted', (t) => {
  const world = worldOf([http('http')]);
  const second = gatewayJson('second', { listeners: [http('http'), http('more', { port: 8080 })] });
  world.apply([second]);
  t.deepEqual(faultsOf(world, 'http', 'Gateway default/second'), [
    'Accepted False PortUnavailable',
    'Programmed False Invalid',
  ]);
  t.deepEqual(
    world.loadBalancer('gateway:default/second').problems.map(({ reason }) => reason),
    ['AddressInUse', 'InvalidListener'],
  );
  world.remove('Gateway', 'default/edge');
  t.deepEqual(faultsOf(world, 'http', 'Gateway default/second'), []);
});
