// TLSRoutes, TCPRoutes, UDPRoutes and GRPCRoutes from objects to the model; the titles are sentences of their specification
// (https://gateway-api.sigs.k8s.io/reference/spec/).

import test from 'ava';
import type { RouteKind } from '../../../../agent/model/object-status.ts';
import type { TcpRouting, TlsRouting } from '../../../../agent/model/routes.ts';
import { hostText } from '../../../../agent/translate/routes/host-pattern.ts';
import { service, slice } from '../../../support/values/build.ts';
import { secret } from '../../../support/values/certificates.ts';
import { conditionTexts, GatewayWorld } from '../../../support/values/gateway-world.ts';
import { gatewayJson, routeJson } from '../../../support/values/gateways.ts';

type Json = Readonly<Record<string, unknown>>;

const EDGE = [{ name: 'edge' }];
const to = (name: string, more: Json = {}) => ({ name, port: 80, ...more });
const tlsListener = (name: string, more: Json = {}) => ({
  name,
  port: 443,
  protocol: 'TLS',
  tls: { mode: 'Passthrough' },
  ...more,
});
const route = (kind: RouteKind, name: string, backends: readonly Json[], spec: Json = {}, created = 1) => {
  const json = routeJson(name, EDGE, { rules: [{ backendRefs: backends }], ...spec }, kind);
  const metadata = { ...(json.metadata as Json), creationTimestamp: `2026-01-01T00:00:0${created}Z` };
  return { ...json, metadata };
};

/** Each host as `host → pools with weights`. */
function tlsHosts(world: GatewayWorld): readonly string[] {
  const { hosts } = world.listener(443).routing as TlsRouting;
  return hosts.map(({ host, backends }) => `${hostText(host)} → ${backendTexts(backends)}`);
}

function backendTexts(backends: TcpRouting['backends']): string {
  return backends.map(({ pool, weight }) => `${pool ?? 'reject'}*${weight}`).join(' ') || 'reject';
}

test('TLS is passed through by the name in the handshake, to pools in mode tcp', (t) => {
  const world = new GatewayWorld([
    gatewayJson('edge', { listeners: [tlsListener('tls', { hostname: '*.example.org' })] }),
    route('TLSRoute', 'a', [to('web', { weight: 3 }), to('gone')], { hostnames: ['a.example.org', 'b.org'] }),
  ]);
  const pool = 'pool:default:web.tcp:tcp:80:v4';
  t.deepEqual(tlsHosts(world), [`a.example.org → ${pool}*3 reject*1`, '*.example.org → reject']);
  t.is(world.listener(443).mode, 'tcp');
  t.is(world.listener(443).tls, undefined);
  t.is(world.loadBalancer('pool:default/web.tcp').listeners[0]?.mode, 'tcp');
  t.deepEqual(world.parents('default/a', 'TLSRoute'), [
    ['Accepted True Accepted', 'ResolvedRefs False BackendNotFound'],
  ]);
});

test('TLS of a listener in mode Terminate is ended with its certificates, and routed by the same name', (t) => {
  const tls = { mode: 'Terminate', certificateRefs: [{ name: 'web-tls' }] };
  const world = new GatewayWorld([
    secret('web-tls'),
    gatewayJson('edge', { listeners: [tlsListener('tls', { tls })] }),
    route('TLSRoute', 'a', [to('web')], { hostnames: ['a.org'] }),
  ]);
  t.deepEqual(tlsHosts(world), ['a.org → pool:default:web.tcp:tcp:80:v4*1', '* → reject']);
  t.is(world.listener(443).mode, 'tcp');
  t.deepEqual(
    world.listener(443).tls?.certificates.map(({ name }) => name),
    ['default/web-tls'],
  );
  t.deepEqual(world.listener(443).tls?.alpn, []);
});

test('A name that belongs to a narrower listener never gets a route of a wider one', (t) => {
  const listeners = [
    tlsListener('wild', { hostname: '*.a.org' }),
    tlsListener('host', { hostname: 'b.a.org' }),
  ];
  const parents = [{ name: 'edge', sectionName: 'wild' }];
  const world = new GatewayWorld([
    gatewayJson('edge', { listeners }),
    routeJson('a', parents, { hostnames: ['*.a.org'] }, 'TLSRoute'),
  ]);
  t.deepEqual(tlsHosts(world), ['*.a.org → pool:default:web.tcp:tcp:80:v4*1', 'b.a.org → reject']);
});

test('Of two TLSRoutes with one host the older one is served, and both are accepted', (t) => {
  const hostnames = ['a.org'];
  const world = new GatewayWorld([
    gatewayJson('edge', { listeners: [tlsListener('tls')] }),
    service({ name: 'old', type: 'ClusterIP' }),
    route('TLSRoute', 'a', [to('web')], { hostnames }, 2),
    route('TLSRoute', 'b', [to('old')], { hostnames }, 1),
  ]);
  t.is(tlsHosts(world)[0], 'a.org → pool:default:old.tcp:tcp:80:v4*1');
  t.is(world.listenerStatus('tls').attachedRoutes, 2);
});

test('A TLSRoute does not attach to a listener of protocol HTTPS', (t) => {
  const tls = { certificateRefs: [{ name: 'web-tls' }] };
  const world = new GatewayWorld([
    secret('web-tls'),
    gatewayJson('edge', { listeners: [{ name: 'https', port: 443, protocol: 'HTTPS', tls }] }),
    route('TLSRoute', 'a', [to('web')], { hostnames: ['a.org'] }),
  ]);
  t.is(world.parents('default/a', 'TLSRoute')[0]?.[0], 'Accepted False NotAllowedByListeners');
});

const TCP = { listeners: [{ name: 'tcp', port: 5432, protocol: 'TCP' }] };

test('A TCPRoute sends connections by weight, and rejects the share of backends that do not exist', (t) => {
  const world = new GatewayWorld([
    gatewayJson('edge', TCP),
    route('TCPRoute', 'a', [to('web', { weight: 9 }), to('gone')]),
  ]);
  const routing = world.listener(5432).routing as TcpRouting;
  t.is(backendTexts(routing.backends), 'pool:default:web.tcp:tcp:80:v4*9 reject*1');
});

test('Of two TCPRoutes of a listener the older one is served; both are accepted and count', (t) => {
  const world = new GatewayWorld([
    gatewayJson('edge', TCP),
    service({ name: 'old', type: 'ClusterIP' }),
    route('TCPRoute', 'a', [to('web')], {}, 2),
    route('TCPRoute', 'b', [to('old')], {}, 1),
  ]);
  const routing = world.listener(5432).routing as TcpRouting;
  t.is(backendTexts(routing.backends), 'pool:default:old.tcp:tcp:80:v4*1');
  t.is(world.listenerStatus('tcp').attachedRoutes, 2);
  t.is(world.parents('default/a', 'TCPRoute')[0]?.[0], 'Accepted True Accepted');
});

const UDP = { listeners: [{ name: 'udp', port: 53, protocol: 'UDP' }] };
const dns = (name: string, address: string, weight = 1) => ({
  objects: [
    service({ name, type: 'ClusterIP', ports: [{ port: 53, protocol: 'UDP' }] }),
    slice({ serviceName: name, endpoints: [address], ports: [{ port: 5353, protocol: 'UDP' }] }),
  ],
  reference: { name, port: 53, weight },
});

test('A UDPRoute is a listener of the kernel with the endpoints of its Services, by weight', (t) => {
  const [one, two] = [dns('one', '10.0.0.1', 1), dns('two', '10.0.0.2', 3)];
  const world = new GatewayWorld([
    gatewayJson('edge', UDP),
    ...one.objects,
    ...two.objects,
    route('UDPRoute', 'a', [one.reference, two.reference]),
  ]);
  const listener = world.listener(53, 'udp');
  t.is(listener.engine, 'kernel');
  t.deepEqual(
    listener.pool.members.map(({ name, weight }) => `${name} ${weight}`),
    ['10.0.0.1:5353 85', '10.0.0.2:5353 256'],
  );
  world.apply([
    slice({ serviceName: 'one', endpoints: ['10.0.0.3'], ports: [{ port: 5353, protocol: 'UDP' }] }),
  ]);
  t.deepEqual(
    world.listener(53, 'udp').pool.members.map(({ name }) => name),
    ['10.0.0.2:5353', '10.0.0.3:5353'],
  );
});

test('A UDPRoute without a usable backend leaves its listener without members', (t) => {
  const world = new GatewayWorld([
    gatewayJson('edge', UDP),
    route('UDPRoute', 'a', [{ name: 'gone', port: 53 }]),
  ]);
  t.deepEqual(world.listener(53, 'udp').pool.members, []);
  t.deepEqual(world.parents('default/a', 'UDPRoute'), [
    ['Accepted True Accepted', 'ResolvedRefs False BackendNotFound'],
  ]);
});

test('A UDPRoute whose other backends get the share of a missing one says so', (t) => {
  const one = dns('one', '10.0.0.1');
  const world = new GatewayWorld([
    gatewayJson('edge', UDP),
    ...one.objects,
    route('UDPRoute', 'a', [one.reference, { name: 'gone', port: 53 }]),
  ]);
  t.is(world.listener(53, 'udp').pool.members.length, 1);
  const [parent] = world.status('UDPRoute', 'default/a').parents;
  const resolved = parent?.conditions.find(({ type }) => type === 'ResolvedRefs');
  t.is(resolved?.reason, 'BackendNotFound');
  t.regex(resolved?.message ?? '', /"default\/gone".*; the other backends get its share$/);
  world.apply([
    route('UDPRoute', 'a', [
      { ...one.reference, weight: 0 },
      { name: 'gone', port: 53 },
    ]),
  ]);
  const [alone] = world.status('UDPRoute', 'default/a').parents;
  t.notRegex(alone?.conditions[1]?.message ?? '', /share/);
});

test('A UDPRoute does not send to a VIP of this load balancer', (t) => {
  const loop = dns('loop', '192.0.2.10');
  const objects = [
    loop.objects[0],
    slice({ serviceName: 'loop', endpoints: ['192.0.2.10'], ports: [{ port: 53, protocol: 'UDP' }] }),
  ].flatMap((each) => each ?? []);
  const world = new GatewayWorld([
    gatewayJson('edge', UDP),
    ...objects,
    route('UDPRoute', 'a', [loop.reference]),
  ]);
  t.deepEqual(world.listener(53, 'udp').pool.members, []);
});

// The matches of GRPCRoute as paths.
const CALLS: readonly (readonly [method: Json | undefined, path: string])[] = [
  [undefined, '/'],
  [{ service: 'a.Greeter', method: 'Hello' }, '=/a.Greeter/Hello'],
  [{ service: 'a.Greeter' }, '/a.Greeter'],
  [{ method: 'Hello' }, '~/[^/]+/Hello$'],
  [{ type: 'RegularExpression', service: 'a\\..*' }, '~/(?:a\\..*)/[^/]+$'],
];

for (const [method, path] of CALLS)
  test(`A GRPCRoute that matches ${JSON.stringify(method ?? {})} matches path ${path}`, (t) => {
    const rules = [
      { matches: [{ method, headers: [{ name: 'X-A', value: '1' }] }], backendRefs: [to('web')] },
    ];
    const world = new GatewayWorld([gatewayJson(), routeJson('api', EDGE, { rules }, 'GRPCRoute')]);
    t.deepEqual(world.routes(), [`*${path} [x-a=1] → web.grpc:tcp:80:v4*1 (GRPCRoute default/api#0)`]);
    t.is(world.loadBalancer('pool:default/web.grpc').listeners[0]?.pool.httpVersion, '2');
  });

test('A GRPCRoute answers 503 for backends that do not exist, which clients read as UNAVAILABLE', (t) => {
  const rules = [{ backendRefs: [to('gone')] }];
  const world = new GatewayWorld([gatewayJson(), routeJson('api', EDGE, { rules }, 'GRPCRoute')]);
  t.deepEqual(world.routes(), ['*/ → 503*1 (GRPCRoute default/api#0)']);
});

test('The statuses of a Gateway name it as the ancestor of the policies of its Services', (t) => {
  const policy = {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'BackendTLSPolicy',
    metadata: { namespace: 'default', name: 'web', uid: 'u', generation: 5 },
    spec: {
      targetRefs: [{ group: '', kind: 'Service', name: 'web' }],
      validation: {
        hostname: 'web.example',
        caCertificateRefs: [{ group: '', kind: 'ConfigMap', name: 'gone' }],
      },
    },
  };
  const world = new GatewayWorld([gatewayJson(), routeJson('api', EDGE), policy]);
  const status = world.status('BackendTLSPolicy', 'default/web');
  t.is(status.generation, 5);
  t.like(status.ancestors[0]?.ref, { kind: 'Gateway', namespace: 'default', name: 'edge' });
  t.deepEqual(conditionTexts(status.ancestors[0]?.conditions ?? []), [
    'Accepted False NoValidCACertificate',
    'ResolvedRefs False InvalidCACertificateRef',
  ]);
  world.remove('HTTPRoute', 'default/api');
  t.deepEqual(world.state.desired.statuses.partsOf('BackendTLSPolicy default/web'), []);
});
