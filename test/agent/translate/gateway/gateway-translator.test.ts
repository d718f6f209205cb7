// Listeners of Gateways, routes and their rules, from objects to the model; the titles are sentences of the specification of
// Gateway and HTTPRoute (https://gateway-api.sigs.k8s.io/reference/spec/).

import test from 'ava';
import type { HttpRouting } from '../../../../agent/model/routes.ts';
import { service } from '../../../support/values/build.ts';
import { ADDRESS, GatewayWorld } from '../../../support/values/gateway-world.ts';
import { gatewayClassJson, gatewayJson, routeJson } from '../../../support/values/gateways.ts';

const EDGE = [{ name: 'edge' }];
const WEB = [{ name: 'web', port: 80 }];
type Json = Readonly<Record<string, unknown>>;

/** The only rule of route `api` with this in its specification. */
function ruleOf(rule: Json, more: readonly Json[] = [], port = 80) {
  const listeners = [{ name: 'http', port, protocol: 'HTTP' }];
  const world = new GatewayWorld([
    gatewayJson('edge', { listeners }),
    routeJson('api', EDGE, { rules: [rule] }),
    ...more,
  ]);
  const { sections } = world.listener(port).routing as HttpRouting;
  const entries = sections[0]?.hosts[0]?.entries ?? [];
  return { world, entries, rule: entries[0]?.rule, action: entries[0]?.rule.action };
}

const filter = (type: string, field: string, content: Json): Json => ({ type, [field]: content });

test('A Gateway with a route is a listener with one section, and a pool', (t) => {
  const world = new GatewayWorld([gatewayJson(), routeJson('api', EDGE)]);
  const listener = world.listener();
  t.is(listener.name, 'gateway:default:edge:tcp:80:v4');
  t.deepEqual(listener.addresses, [ADDRESS]);
  t.is(listener.mode, 'http');
  t.deepEqual(world.routes(), ['*/ → web:tcp:80:v4*1 (HTTPRoute default/api#0)']);
  const pool = world.loadBalancer('pool:default/web');
  t.deepEqual(
    pool.listeners.map((each) => [each.name, each.reachedBy, each.pool.members.map(({ name }) => name)]),
    [['pool:default:web:tcp:80:v4', 'routes', ['10.0.0.1:8080']]],
  );
  t.deepEqual(world.parents(), [['Accepted True Accepted', 'ResolvedRefs True ResolvedRefs']]);
});

test('A Gateway of another controller is not served, and gets no status', (t) => {
  const world = new GatewayWorld([gatewayClassJson('edge', 'example.org/other'), gatewayJson()]);
  t.deepEqual([...world.state.desired.loadBalancers.keys()], []);
  t.deepEqual(world.state.desired.statuses.of('gateway:default/edge'), []);
  t.regex(world.state.desired.ignored.get('gateway:default/edge')?.reason ?? '', /"example.org\/other", not/);
});

test('A Gateway that is deleted takes its pools and statuses with it', (t) => {
  const world = new GatewayWorld([gatewayJson(), routeJson('api', EDGE)]);
  world.remove('Gateway', 'default/edge');
  t.deepEqual([...world.state.desired.loadBalancers.keys()], []);
  t.deepEqual(world.state.desired.statuses.partsOf('HTTPRoute default/api'), []);
});

test('The listeners of one port share a listener of the load balancer, each with the hosts that it has in common with routes', (t) => {
  const listeners = [
    { name: 'any', port: 80, protocol: 'HTTP' },
    { name: 'wild', port: 80, protocol: 'HTTP', hostname: '*.example.org' },
    { name: 'other', port: 8080, protocol: 'HTTP' },
  ];
  const hostnames = ['a.example.org', 'b.example.com'];
  const world = new GatewayWorld([gatewayJson('edge', { listeners }), routeJson('api', EDGE, { hostnames })]);
  t.deepEqual(
    world.loadBalancer().listeners.map(({ port }) => port),
    [80, 8080],
  );
  const rule = '/ → web:tcp:80:v4*1 (HTTPRoute default/api#0)';
  t.deepEqual(world.routes(80, 'any'), [`a.example.org${rule}`, `b.example.com${rule}`]);
  t.deepEqual(world.routes(80, 'wild'), [`a.example.org${rule}`]);
});

test('Precedence runs over all routes of a listener', (t) => {
  const match = (path: string, type = 'PathPrefix') => ({ path: { type, value: path } });
  const to = (...matches: Json[]) => [{ matches, backendRefs: WEB }];
  const world = new GatewayWorld([
    gatewayJson(),
    routeJson('a', EDGE, { rules: to(match('/'), match('/v2/')) }),
    routeJson('b', EDGE, { rules: to(match('/v2/list', 'Exact'), { ...match('/'), method: 'GET' }) }),
    routeJson('c', EDGE, { rules: to({ headers: [{ name: 'X-Version', value: '2' }] }) }),
  ]);
  t.deepEqual(
    world.routes().map((each) => each.replace(/ → .*#/, ' #')),
    ['*=/v2/list #0)', '*/v2 #0)', '*/ [GET] #0)', '*/ [x-version=2] #0)', '*/ #0)'],
  );
});

function dated(route: Json, second: number): Json {
  const creationTimestamp = `2026-01-01T00:00:0${second}Z`;
  return { ...route, metadata: { ...(route.metadata as Json), creationTimestamp } };
}

const ACCEPTED = ['Accepted True Accepted', 'ResolvedRefs True ResolvedRefs'];
const REJECTED = ['Accepted False HostnameConflict', 'ResolvedRefs True ResolvedRefs'];

for (const [http, grpc, isCommon] of [
  [['a.example.org'], ['a.example.org'], true],
  [['*.example.org'], ['a.example.org'], true],
  [['a.example.org'], ['*.example.org'], true],
  [['a.b.example.org'], ['*.example.org'], true],
  [['*.b.example.org'], ['*.example.org'], true],
  [['*.example.org'], ['*.b.example.org'], true],
  [[], ['a.example.org'], true],
  [['a.example.org'], [], true],
  [['a.example.org'], ['b.example.org'], false],
  [['example.org'], ['*.example.org'], false],
  [['*.a.example.org'], ['*.b.example.org'], false],
  [['a.example.org', 'c.example.org'], ['b.example.org', 'c.example.org'], true],
] as const)
  for (const isOlder of [true, false])
    test(`Of an HTTPRoute of ${http.join() || 'any host'} and a GRPCRoute of ${grpc.join() || 'any host'} ${isCommon ? `the ${isOlder ? 'first' : 'second'}, older one is` : 'both are'} accepted, ${isOlder ? 'the first' : 'the second'} is older`, (t) => {
      const world = new GatewayWorld([
        gatewayJson(),
        dated(routeJson('h', EDGE, { hostnames: http }), isOlder ? 1 : 2),
        dated(routeJson('g', EDGE, { hostnames: grpc }, 'GRPCRoute'), isOlder ? 2 : 1),
      ]);
      const [first, second] = isCommon
        ? isOlder
          ? [ACCEPTED, REJECTED]
          : [REJECTED, ACCEPTED]
        : [ACCEPTED, ACCEPTED];
      t.deepEqual(world.parents('default/h'), [first]);
      t.deepEqual(world.parents('default/g', 'GRPCRoute'), [second]);
      t.is(world.status('Gateway', 'default/edge').listeners[0]?.attachedRoutes, isCommon ? 1 : 2);
      t.is(
        world.routes().some((each) => each.includes('HTTPRoute')),
        first === ACCEPTED,
      );
      t.is(
        world.routes().some((each) => each.includes('GRPCRoute')),
        second === ACCEPTED,
      );
      const { problems } = world.loadBalancer();
      t.deepEqual(
        problems.map(({ object, reason }) => `${object} ${reason}`),
        isCommon ? [`${isOlder ? 'GRPCRoute default/g' : 'HTTPRoute default/h'} RouteShadowed`] : [],
      );
    });

test('A GRPCRoute is accepted once the older HTTPRoute with its host is gone, or on a listener of its own', (t) => {
  const listeners = [
    { name: 'one', port: 80, protocol: 'HTTP' },
    { name: 'two', port: 81, protocol: 'HTTP' },
  ];
  const world = new GatewayWorld([
    gatewayJson('edge', { listeners }),
    dated(routeJson('h', [{ name: 'edge', sectionName: 'one' }]), 1),
    dated(routeJson('g', EDGE, {}, 'GRPCRoute'), 2),
  ]);
  t.deepEqual(world.parents('default/g', 'GRPCRoute'), [ACCEPTED], 'listener "two" has it');
  t.deepEqual(
    world.routes(80).map((each) => each.includes('GRPCRoute')),
    [false],
  );
  t.deepEqual(
    world.routes(81).map((each) => each.includes('GRPCRoute')),
    [true],
  );
  t.regex(
    world.loadBalancer().problems[0]?.message ?? '',
    /^Cannot attach to listener "one": An older HTTPRoute/,
  );
  world.remove('HTTPRoute', 'default/h');
  t.deepEqual(
    world.routes(80).map((each) => each.includes('GRPCRoute')),
    [true],
  );
  t.deepEqual(world.loadBalancer().problems, []);
});

test('A rule without matches, and a route without rules, take every request', (t) => {
  t.like(ruleOf({ backendRefs: WEB }).entries[0]?.match, { path: { kind: 'prefix', value: '' }, method: '' });
  const world = new GatewayWorld([gatewayJson(), routeJson('api', EDGE, { rules: [] })]);
  t.deepEqual(world.routes(), ['*/ → 500 (HTTPRoute default/api#0)']);
});

// Each reference that cannot be followed: what the route's status says, and what requests get.
const REFERENCES: readonly (readonly [title: string, reference: Json, reason: string])[] = [
  ['A backend that does not exist is BackendNotFound', { name: 'gone', port: 80 }, 'BackendNotFound'],
  ['A port that the Service does not have is BackendNotFound', { name: 'web', port: 81 }, 'BackendNotFound'],
  ['A Service without a port in the reference is BackendNotFound', { name: 'web' }, 'BackendNotFound'],
  [
    'A backend of another kind may have a name that no Service has, and is InvalidKind',
    { name: '*', port: 80, kind: 'Bucket' },
    'InvalidKind',
  ],
  ['A Service with a name that none can have is BackendNotFound', { name: '*', port: 80 }, 'BackendNotFound'],
  ['A backend of an unknown kind is InvalidKind', { name: 'web', port: 80, kind: 'Bucket' }, 'InvalidKind'],
  [
    'A backend of another group is InvalidKind',
    { name: 'web', port: 80, group: 'example.org' },
    'InvalidKind',
  ],
  [
    'A backend of another namespace without a ReferenceGrant is RefNotPermitted',
    { name: 'web', port: 80, namespace: 'shop' },
    'RefNotPermitted',
  ],
  ['A port of another protocol is UnsupportedProtocol', { name: 'dns', port: 53 }, 'UnsupportedProtocol'],
];

for (const [title, reference, reason] of REFERENCES)
  test(`${title}, and its share of the requests gets 500`, (t) => {
    const dns = service({ name: 'dns', type: 'ClusterIP', ports: [{ port: 53, protocol: 'UDP' }] });
    const { world } = ruleOf({ backendRefs: [{ ...reference, weight: 3 }, ...WEB] });
    world.apply([dns]);
    t.deepEqual(world.routes(), ['*/ → 500*3 web:tcp:80:v4*1 (HTTPRoute default/api#0)']);
    t.deepEqual(world.parents(), [['Accepted True Accepted', `ResolvedRefs False ${reason}`]]);
  });

test('Members that speak WebSocket over TLS need a BackendTLSPolicy: without it the route is UnsupportedProtocol', (t) => {
  const { world } = ruleOf({ backendRefs: WEB });
  const ports = [{ port: 80, appProtocol: 'kubernetes.io/wss' }];
  const parents = () => world.parents();
  world.apply([service({ type: 'ClusterIP', ports })]);
  t.deepEqual(parents(), [['Accepted True Accepted', 'ResolvedRefs False UnsupportedProtocol']]);
  const policy = {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'BackendTLSPolicy',
    metadata: { name: 'web', namespace: 'default' },
    spec: {
      targetRefs: [{ group: '', kind: 'Service', name: 'web' }],
      validation: { wellKnownCACertificates: 'System', hostname: 'web.example.org' },
    },
  };
  world.apply([policy]);
  t.deepEqual(parents(), [['Accepted True Accepted', 'ResolvedRefs True ResolvedRefs']]);
  world.remove('BackendTLSPolicy', 'default/web');
  t.deepEqual(parents(), [['Accepted True Accepted', 'ResolvedRefs False UnsupportedProtocol']]);
});

test('A rule without backendRefs answers 500, and its references are resolved', (t) => {
  const { world } = ruleOf({});
  t.deepEqual(world.routes(), ['*/ → 500 (HTTPRoute default/api#0)']);
  t.deepEqual(world.parents(), [['Accepted True Accepted', 'ResolvedRefs True ResolvedRefs']]);
});

test('A ReferenceGrant permits a reference while it exists', (t) => {
  const from = [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', namespace: 'default' }];
  const grant = (to: Json) => ({
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'ReferenceGrant',
    metadata: { name: 'routes', namespace: 'shop' },
    spec: { from, to: [to] },
  });
  const { world } = ruleOf({ backendRefs: [{ name: 'web', port: 80, namespace: 'shop' }] }, []);
  const isPermitted = () => world.routes()[0]?.includes('pool:shop:web');
  world.apply([service({ namespace: 'shop', type: 'ClusterIP' })]);
  t.false(isPermitted());
  world.apply([grant({ group: '', kind: 'Service' })]);
  t.true(isPermitted(), 'all Services');
  world.apply([grant({ group: '', kind: 'Service', name: 'other' })]);
  t.false(isPermitted(), 'another Service');
  world.apply([grant({ group: '', kind: 'Service', name: 'web' })]);
  t.true(isPermitted(), 'this Service');
  world.apply([grant({ group: '', kind: 'Secret' })]);
  t.false(isPermitted(), 'another kind');
  world.apply([grant({ group: '', kind: 'Service' })]);
  world.remove('ReferenceGrant', 'shop/routes');
  t.false(isPermitted(), 'no grant any more');
});

test('A Service that appears or goes changes the routes that send to it', (t) => {
  const { world } = ruleOf({ backendRefs: [{ name: 'late', port: 80 }] });
  t.deepEqual(world.routes(), ['*/ → 500*1 (HTTPRoute default/api#0)']);
  world.apply([service({ name: 'late', type: 'ClusterIP' })]);
  t.deepEqual(world.routes(), ['*/ → late:tcp:80:v4*1 (HTTPRoute default/api#0)']);
  t.true(world.state.desired.loadBalancers.has('pool:default/late'));
  world.remove('Service', 'default/late');
  t.deepEqual(world.routes(), ['*/ → 500*1 (HTTPRoute default/api#0)']);
  t.false(world.state.desired.loadBalancers.has('pool:default/late'));
});

const CHANGES = {
  set: [{ name: 'X-A', value: 'a' }],
  add: [{ name: 'X-B', value: 'b' }],
  remove: ['X-C'],
};

test('RequestHeaderModifier and ResponseHeaderModifier change headers, for a rule or for one of its backends', (t) => {
  const filters = [
    filter('RequestHeaderModifier', 'requestHeaderModifier', CHANGES),
    filter('ResponseHeaderModifier', 'responseHeaderModifier', { remove: ['X-D'] }),
  ];
  const { rule, action } = ruleOf({ filters, backendRefs: [{ ...WEB[0], filters }] });
  t.like(rule, { responseHeaders: { set: [], add: [], remove: ['X-D'] } });
  t.like(action, {
    requestHeaders: CHANGES,
    backends: { 0: { requestHeaders: CHANGES, responseHeaders: { remove: ['X-D'] } } },
  });
});

test('Of several changes of one header the first one counts', (t) => {
  const changes = {
    set: [
      { name: 'X-A', value: '1' },
      { name: 'x-a', value: '2' },
    ],
    remove: ['X-a'],
  };
  const { action } = ruleOf({
    filters: [filter('RequestHeaderModifier', 'requestHeaderModifier', changes)],
    backendRefs: WEB,
  });
  t.like(action, { requestHeaders: { set: [{ name: 'X-A', value: '1' }], add: [], remove: [] } });
});

test('URLRewrite changes the host and the path; a prefix loses the slash at its end', (t) => {
  const rewrite = (path: Json) =>
    ruleOf({
      filters: [filter('URLRewrite', 'urlRewrite', { hostname: 'in.example.org', path })],
      backendRefs: WEB,
    }).action;
  t.like(rewrite({ type: 'ReplaceFullPath', replaceFullPath: '/one/' }), {
    rewrite: { hostname: 'in.example.org', path: { kind: 'full', value: '/one/' } },
  });
  t.like(rewrite({ type: 'ReplacePrefixMatch', replacePrefixMatch: '/' }), {
    rewrite: { path: { kind: 'prefix', value: '' } },
  });
});

// The rules of HTTPRequestRedirectFilter, field `port`.
const REDIRECTS: readonly (readonly [redirect: Json, listener: number, port: number])[] = [
  [{}, 80, 0],
  [{}, 8080, 8080],
  [{ port: 80 }, 8080, 0],
  [{ port: 8443 }, 80, 8443],
  [{ scheme: 'https' }, 80, 0],
  [{ scheme: 'https' }, 8080, 0],
  [{ scheme: 'https', port: 443 }, 80, 0],
  [{ scheme: 'https', port: 80 }, 80, 80],
  [{ scheme: 'http', port: 443 }, 80, 443],
];

for (const [redirect, listener, port] of REDIRECTS)
  test(`A redirect of ${JSON.stringify(redirect)} on port ${listener} names ${port === 0 ? 'no port' : `port ${port}`}`, (t) => {
    const filters = [filter('RequestRedirect', 'requestRedirect', redirect)];
    t.like(ruleOf({ filters }, [], listener).action, { kind: 'redirect', status: 302, port });
  });

test('A redirect depends on the listener at which the request came', (t) => {
  const listeners = [
    { name: 'one', port: 80, protocol: 'HTTP' },
    { name: 'two', port: 8080, protocol: 'HTTP' },
  ];
  const filters = [filter('RequestRedirect', 'requestRedirect', { statusCode: 301 })];
  const world = new GatewayWorld([
    gatewayJson('edge', { listeners }),
    routeJson('api', EDGE, { rules: [{ filters }] }),
  ]);
  const portOn = (port: number) => {
    const { sections } = world.listener(port).routing as HttpRouting;
    const action = sections[0]?.hosts[0]?.entries[0]?.rule.action;
    return action?.kind === 'redirect' ? action.port : undefined;
  };
  t.deepEqual([portOn(80), portOn(8080)], [0, 8080]);
});

test('RequestMirror copies to Services that exist; one that does not is no mirror, and not resolved', (t) => {
  const mirror = (name: string, more: Json = {}) =>
    filter('RequestMirror', 'requestMirror', { backendRef: { name, port: 80 }, ...more });
  const filters = [
    mirror('web', { percent: 20 }),
    mirror('web', { fraction: { numerator: 1, denominator: 7 } }),
    mirror('gone'),
  ];
  const { world, action } = ruleOf({ filters, backendRefs: WEB });
  const pool = 'pool:default:web:tcp:80:v4';
  t.like(action, {
    mirrors: [
      { pool, numerator: 20, denominator: 100 },
      { pool, numerator: 1, denominator: 7 },
    ],
  });
  t.deepEqual(world.parents(), [['Accepted True Accepted', 'ResolvedRefs False BackendNotFound']]);
});

test('A rule has the shorter one of its two time-outs; 0 is none', (t) => {
  const timeoutOf = (timeouts: Json) => {
    const { action } = ruleOf({ timeouts, backendRefs: WEB });
    return action?.kind === 'forward' ? action.timeout : undefined;
  };
  t.is(timeoutOf({}), 0);
  t.is(timeoutOf({ request: '1m', backendRequest: '500ms' }), 500);
  t.is(timeoutOf({ request: '10s', backendRequest: '0s' }), 10_000);
  t.is(timeoutOf({ request: '0s' }), 24 * 3_600_000);
});

test('A CORS filter keeps all its fields, and its age is 5 s if it has none', (t) => {
  const cors = {
    allowOrigins: ['https://*.example.org'],
    allowMethods: ['GET', '*'].slice(0, 1),
    allowCredentials: true,
  };
  const { rule } = ruleOf({ filters: [filter('CORS', 'cors', cors)], backendRefs: WEB });
  t.deepEqual(rule?.cors, {
    origins: ['https://*.example.org'],
    methods: ['GET'],
    allowHeaders: [],
    exposeHeaders: [],
    maxAge: 5,
    credentials: true,
  });
});

// What a rule cannot have: the reason of `Accepted` if the route has no other rule.
const REFUSED: readonly (readonly [title: string, rule: Json, reason: string])[] = [
  [
    'a filter of an unknown type',
    { filters: [filter('ExtensionRef', 'extensionRef', { group: 'x.org', kind: 'Y', name: 'z' })] },
    'UnsupportedValue',
  ],
  [
    'both a redirect and a rewrite',
    {
      filters: [
        filter('RequestRedirect', 'requestRedirect', {}),
        filter('URLRewrite', 'urlRewrite', { hostname: 'a.org' }),
      ],
    },
    'IncompatibleFilters',
  ],
  [
    'a redirect and backends',
    { filters: [filter('RequestRedirect', 'requestRedirect', {})], backendRefs: WEB },
    'IncompatibleFilters',
  ],
  [
    'ReplacePrefixMatch without a prefix',
    {
      matches: [{ path: { type: 'Exact', value: '/a' } }],
      filters: [
        filter('URLRewrite', 'urlRewrite', { path: { type: 'ReplacePrefixMatch', replacePrefixMatch: '/' } }),
      ],
    },
    'UnsupportedValue',
  ],
  [
    'an expression that is none',
    { matches: [{ path: { type: 'RegularExpression', value: '/(' } }] },
    'UnsupportedValue',
  ],
  ['a retry of a code that HAProxy cannot retry', { retry: { codes: [599] } }, 'UnsupportedValue'],
  ['a retry with a backoff', { retry: { backoff: '100ms' } }, 'UnsupportedValue'],
  [
    'a filter of a backend that is for whole rules',
    { backendRefs: [{ ...WEB[0], filters: [filter('URLRewrite', 'urlRewrite', { hostname: 'a.org' })] }] },
    'UnsupportedValue',
  ],
];

for (const [title, rule, reason] of REFUSED) {
  test(`A route whose only rule has ${title} is not accepted, and its matches answer 500`, (t) => {
    const world = new GatewayWorld([gatewayJson(), routeJson('api', EDGE, { rules: [rule] })]);
    t.is(world.parents()[0]?.[0], `Accepted False ${reason}`);
    t.true(world.routes().length > 0);
    t.deepEqual(
      world.routes().filter((each) => !each.endsWith('→ 500 (HTTPRoute default/api#0)')),
      [],
    );
    t.is(world.listenerStatus('http').attachedRoutes, 0);
  });
  test(`A rule that has ${title} answers 500 beside rules that are served, and the route is partially invalid`, (t) => {
    const good = { matches: [{ path: { value: '/good' } }], backendRefs: WEB };
    const world = new GatewayWorld([gatewayJson(), routeJson('api', EDGE, { rules: [rule, good] })]);
    t.is(world.parents()[0]?.at(0), 'Accepted True Accepted');
    t.is(world.parents()[0]?.at(-1), 'PartiallyInvalid True UnsupportedValue');
    const [parent] = world.status('HTTPRoute', 'default/api').parents;
    t.regex(parent?.conditions.at(-1)?.message ?? '', /^Dropped Rule/);
    t.true(world.routes().some((each) => each.endsWith('→ 500 (HTTPRoute default/api#0)')));
    t.true(world.routes().includes('*/good → web:tcp:80:v4*1 (HTTPRoute default/api#1)'));
  });
}

test('Annotations of an HTTPRoute limit its clients, and one that is not allowed is told', (t) => {
  const route = routeJson('api', EDGE);
  const annotations = {
    'headgate.io/limit-rps': '50',
    'headgate.io/allowlist-source-range': '10.0.0.0/8',
    'headgate.io/hsts': '3600',
    'headgate.io/auth-realm': '"',
  };
  const metadata = { ...(route.metadata as Json), annotations };
  const world = new GatewayWorld([gatewayJson(), { ...route, metadata }]);
  const { sections } = world.listener().routing as HttpRouting;
  const rule = sections[0]?.hosts[0]?.entries[0]?.rule;
  t.deepEqual(rule?.limits, {
    allowedCidrs: ['10.0.0.0/8'],
    deniedCidrs: [],
    requestRate: 50,
    bodyBytes: 0,
  });
  t.deepEqual(rule?.responseHeaders?.set, [{ name: 'Strict-Transport-Security', value: 'max-age=3600' }]);
  t.deepEqual(
    world.loadBalancer().problems.map(({ object, message }) => `${object}: ${message}`),
    [
      'HTTPRoute default/api: Annotation "headgate.io/auth-realm" is ignored: "\\"" is not at most 100 letters, digits, blanks and characters of . _ -',
    ],
  );
});

test('A match of an HTTPRoute that an older route has as well is told to its author', (t) => {
  const at = (name: string, creationTimestamp: string) => {
    const route = routeJson(name, EDGE);
    return { ...route, metadata: { ...(route.metadata as Json), creationTimestamp } };
  };
  const world = new GatewayWorld([
    gatewayJson(),
    at('old', '2026-11-01T00:00:00Z'),
    at('young', '2026-11-02T00:00:00Z'),
  ]);
  t.deepEqual(
    world.loadBalancer().problems.map(({ object, reason, message }) => `${object} ${reason}: ${message}`),
    [
      'HTTPRoute default/young RouteShadowed: Path "/" of host "*" gets no request: the older HTTPRoute default/old has the same one',
    ],
  );
});
