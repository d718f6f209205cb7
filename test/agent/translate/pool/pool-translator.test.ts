// The pools that routes send to, from Services, EndpointSlices and BackendTLSPolicies.

import test from 'ava';
import type { KubernetesObject, Service } from '../../../../agent/kubernetes/objects.ts';
import { poolKey } from '../../../../agent/model/names.ts';
import {
  askedProfile,
  poolProfile,
  withCertificate,
  withPersistence,
  withRetry,
} from '../../../../agent/translate/pool/pool-profile.ts';
import { endpoint, service, slice } from '../../../support/values/build.ts';
import { API, configMap, secret, WEB } from '../../../support/values/certificates.ts';
import { GatewayWorld } from '../../../support/values/gateway-world.ts';
import { gatewayJson, parsed, routeJson } from '../../../support/values/gateways.ts';

type Json = Readonly<Record<string, unknown>>;

const web = (given: Parameters<typeof service>[0]) => service({ type: 'ClusterIP', ...given });

function worldOf(objects: readonly KubernetesObject[]): GatewayWorld {
  return new GatewayWorld([gatewayJson(), routeJson('api', [{ name: 'edge' }]), ...objects]);
}

function poolOf(world: GatewayWorld) {
  const [listener] = world.loadBalancer('pool:default/web').listeners;
  if (listener === undefined) throw new Error('The pool has no listener');
  return listener.pool;
}

const membersOf = (world: GatewayWorld) => poolOf(world).members.map(({ name, state }) => `${name} ${state}`);

test('A change of endpoints changes the pool alone', (t) => {
  const world = worldOf([]);
  const changed = world.apply([slice({ endpoints: ['10.0.0.1', '10.0.0.2'] })]);
  t.deepEqual([...changed], ['pool:default/web']);
  t.deepEqual(membersOf(world), ['10.0.0.1:8080 ready', '10.0.0.2:8080 ready']);
});

test('A pool has a listener for each port that a route uses', (t) => {
  const ports = [80, 81, 82].map((port) => ({ name: `p${port}`, port }));
  const world = worldOf([web({ ports })]);
  world.apply([
    routeJson('two', [{ name: 'edge' }], { rules: [{ backendRefs: [{ name: 'web', port: 82 }] }] }),
  ]);
  const portsOf = () => world.loadBalancer('pool:default/web').listeners.map(({ port }) => port);
  t.deepEqual(portsOf(), [80, 82]);
  world.remove('HTTPRoute', 'default/api');
  t.deepEqual(portsOf(), [82]);
});

test('A pool of two Gateways stays while one of them uses it', (t) => {
  const world = worldOf([]);
  world.apply([gatewayJson('second'), routeJson('other', [{ name: 'second' }])]);
  world.remove('Gateway', 'default/edge');
  t.true(world.state.desired.loadBalancers.has('pool:default/web'));
  world.remove('Gateway', 'default/second');
  t.false(world.state.desired.loadBalancers.has('pool:default/web'));
});

test('A terminating endpoint keeps its connections, and gets no new ones', (t) => {
  const endpoints = ['10.0.0.1', endpoint('10.0.0.2', { ready: false, serving: true, terminating: true })];
  t.deepEqual(membersOf(worldOf([slice({ endpoints })])), ['10.0.0.1:8080 ready', '10.0.0.2:8080 drain']);
});

test('Of a Service with both families a pool has the IPv4 endpoints; of one with IPv6 alone, these', (t) => {
  const v6 = slice({ name: 'web-v6', endpoints: ['fd00::1'] });
  t.deepEqual(membersOf(worldOf([v6])), ['10.0.0.1:8080 ready']);
  t.deepEqual(membersOf(worldOf([slice({ endpoints: [] }), v6])), ['fd00::1:8080 ready']);
});

test('A route may send to a headless Service, whether or not its slices say that it is one', (t) => {
  for (const isSaid of [true, false]) {
    const slices = [slice({ endpoints: [] }), slice({ name: 'web-2', headless: isSaid })];
    t.deepEqual(membersOf(worldOf([web({ headless: true }), ...slices])), ['10.0.0.1:8080 ready']);
  }
});

test('A slice that only says that it is of a headless Service gives a pool no member', (t) => {
  const world = worldOf([slice({ endpoints: [] }), slice({ name: 'web-2', headless: true })]);
  t.deepEqual(membersOf(world), []);
});

// The fields of a Service that its pool has.
const FIELDS: readonly (readonly [title: string, given: Partial<Service>, pool: Json])[] = [
  ['appProtocol kubernetes.io/h2c is HTTP/2', { ports: [portOf('kubernetes.io/h2c')] }, { httpVersion: '2' }],
  [
    'appProtocol kubernetes.io/ws is HTTP/1.1',
    { ports: [portOf('kubernetes.io/ws')] },
    { httpVersion: '1.1' },
  ],
  [
    'annotation algorithm counts',
    { annotations: { 'headgate.io/algorithm': 'least-connections' } },
    { algorithm: 'least-connections' },
  ],
  [
    'a health monitor counts',
    { annotations: { 'headgate.io/health-monitor': 'tcp' } },
    { monitor: { type: 'tcp' } },
  ],
  ['sessionAffinity counts', { affinitySeconds: 60 }, { persistence: 60 }],
];

function portOf(appProtocol: string) {
  return { name: '', port: 80, protocol: 'TCP', nodePort: 0, appProtocol } as const;
}

for (const [title, given, pool] of FIELDS)
  test(`In a pool of routes ${title}`, (t) => {
    t.like(poolOf(worldOf([web(given)])), pool);
  });

test('A pool refuses members that a Service must not send to', (t) => {
  const world = worldOf([slice({ endpoints: ['10.0.0.1', '192.0.2.10'], ports: [80] })]);
  t.deepEqual(membersOf(world), ['10.0.0.1:80 ready']);
  t.is(world.loadBalancer('pool:default/web').problems[0]?.reason, 'InvalidEndpoint');
});

function policy(name: string, validation: Json = {}, sectionName = '', created = 1): KubernetesObject {
  return parsed({
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'BackendTLSPolicy',
    metadata: {
      namespace: 'default',
      name,
      uid: `uid-${name}`,
      creationTimestamp: `2026-01-01T00:00:0${created}Z`,
      generation: 1,
    },
    spec: {
      targetRefs: [{ group: '', kind: 'Service', name: 'web', ...(sectionName && { sectionName }) }],
      validation: {
        hostname: `${name}.example`,
        caCertificateRefs: [{ group: '', kind: 'ConfigMap', name: 'ca' }],
        ...validation,
      },
    },
  });
}

const NAMED = web({ ports: [{ name: 'https', port: 80 }] });
const NAMED_SLICE = slice({ ports: [{ name: 'https', port: 8443 }] });

test('A BackendTLSPolicy verifies the members by its hostname and its authority', (t) => {
  const world = worldOf([configMap('ca'), policy('a')]);
  t.like(poolOf(world).tls, { serverName: 'a.example', authority: { name: 'configmap default/ca' } });
  t.is(poolOf(world).members.length, 1);
  world.remove('BackendTLSPolicy', 'default/a');
  t.is(poolOf(world).tls, undefined);
});

test('Members with TLS get the certificate of the Gateway, in a pool that other Gateways do not use', (t) => {
  const listeners = [{ name: 'http', port: 81, protocol: 'HTTP' }];
  const tls = { backend: { clientCertificateRef: { name: 'client' } } };
  const world = worldOf([configMap('ca'), policy('a'), secret('client', API)]);
  world.apply([gatewayJson('named', { listeners, tls }), routeJson('other', [{ name: 'named' }])]);
  const key = poolKey('default', 'web', withCertificate('default/client', ''));
  const certificate = () => world.listener(80, 'tcp', key).pool.tls?.certificate;
  t.is(poolOf(world).tls?.certificate, undefined);
  t.is(certificate()?.name, 'default/client');
  const name = key.slice('pool:default/'.length);
  t.deepEqual(world.routes(81, undefined, 'gateway:default/named'), [
    `*/ → ${name}:tcp:80:v4*1 (HTTPRoute default/other#0)`,
  ]);
  const before = certificate()?.fingerprint;
  t.deepEqual([...world.apply([secret('client', WEB)])], [key], 'its next content changes the pool alone');
  t.not(certificate()?.fingerprint, before);
  const last = certificate();
  world.remove('Secret', 'default/client');
  t.deepEqual(certificate(), last, 'a certificate whose Secret goes stays in use');
  world.remove('BackendTLSPolicy', 'default/a');
  t.is(world.listener(80, 'tcp', key).pool.tls, undefined);
  world.apply([gatewayJson('named', { listeners })]);
  t.false(world.state.desired.loadBalancers.has(key));
});

test('An authorization server with TLS gets the certificate of the Gateway', (t) => {
  const tls = { backend: { clientCertificateRef: { name: 'client' } } };
  const listeners = [{ name: 'http', port: 81, protocol: 'HTTP' }];
  const http = { allowedHeaders: [], allowedResponseHeaders: [] };
  const externalAuth = { protocol: 'HTTP', backendRef: { name: 'web', port: 80 }, http };
  const rule = {
    filters: [{ type: 'ExternalAuth', externalAuth }],
    backendRefs: [{ name: 'web', port: 80 }],
  };
  const world = worldOf([configMap('ca'), policy('a'), secret('client', API)]);
  world.apply([
    gatewayJson('named', { listeners, tls }),
    routeJson('asking', [{ name: 'named' }], { rules: [rule] }),
  ]);
  const key = poolKey('default', 'web', withCertificate('default/client', askedProfile('')));
  t.is(world.listener(80, 'tcp', key).pool.tls?.certificate?.name, 'default/client');
});

test('A policy whose authority goes is not accepted, and members are verified as before', (t) => {
  const world = worldOf([configMap('ca'), policy('a')]);
  world.remove('ConfigMap', 'default/ca');
  const { ancestors } = world.status('BackendTLSPolicy', 'default/a');
  t.deepEqual(
    ancestors[0]?.conditions.map(({ reason }) => reason),
    ['NoValidCACertificate', 'InvalidCACertificateRef'],
  );
  t.is(poolOf(world).tls?.serverName, 'a.example');
});

test('A policy for a port counts before one for the whole Service, and of two the older one', (t) => {
  const world = worldOf([
    NAMED,
    NAMED_SLICE,
    configMap('ca'),
    policy('whole'),
    policy('younger', {}, 'https', 2),
  ]);
  t.is(poolOf(world).tls?.serverName, 'younger.example');
  world.apply([policy('older', {}, 'https', 1)]);
  t.is(poolOf(world).tls?.serverName, 'older.example');
  const accepted = (name: string) =>
    world.status('BackendTLSPolicy', `default/${name}`).ancestors[0]?.conditions[0]?.reason;
  t.deepEqual(['whole', 'younger', 'older'].map(accepted), ['Accepted', 'Conflicted', 'Accepted']);
});

// A policy that cannot be carried out: requests get an error instead of an unverified connection.
const REFUSED: readonly (readonly [title: string, validation: Json, reasons: readonly string[]])[] = [
  [
    'names an authority that does not exist',
    { caCertificateRefs: [{ group: '', kind: 'ConfigMap', name: 'gone' }] },
    ['NoValidCACertificate', 'InvalidCACertificateRef'],
  ],
  [
    'names an authority of another kind',
    { caCertificateRefs: [{ group: '', kind: 'Bucket', name: 'ca' }] },
    ['NoValidCACertificate', 'InvalidKind'],
  ],
  [
    'names well-known authorities',
    { caCertificateRefs: [], wellKnownCACertificates: 'System' },
    ['Invalid', 'ResolvedRefs'],
  ],
  [
    'has subjectAltNames',
    { subjectAltNames: [{ type: 'Hostname', hostname: 'b.example' }] },
    ['Invalid', 'ResolvedRefs'],
  ],
];

for (const [title, validation, reasons] of REFUSED)
  test(`A policy that ${title} leaves the pool without members`, (t) => {
    const world = worldOf([configMap('ca'), policy('a', validation)]);
    t.deepEqual(poolOf(world).members, []);
    const { ancestors } = world.status('BackendTLSPolicy', 'default/a');
    t.deepEqual(
      ancestors[0]?.conditions.map(({ reason }) => reason),
      reasons,
    );
  });

/** A policy with these targets. */
function aiming(...targets: readonly Json[]): KubernetesObject {
  const made = policy('a');
  if (made.kind !== 'BackendTLSPolicy') throw new Error('It is no policy');
  const all = targets.map((target) => ({
    ...{ group: '', kind: 'Service', name: 'web', sectionName: '' },
    ...target,
  }));
  return { ...made, targets: all };
}

const TWO_PORTS = web({
  ports: [
    { name: 'https', port: 80 },
    { name: 'admin', port: 81 },
  ],
});
const TWO_SLICES = slice({
  ports: [
    { name: 'https', port: 8443 },
    { name: 'admin', port: 8444 },
  ],
});

// An author who asks for verification: requests must not go out without it.
for (const [title, target, closed] of [
  ['names a port nearly', { sectionName: 'htps' }, [80]],
  ['names a port by its number', { sectionName: '443' }, [80, 81]],
  ['names a port that is not there', { sectionName: 'metrics' }, [80, 81]],
  ['names the Service by another group', { group: 'core' }, [80, 81]],
  ['names the Service by another kind', { kind: 'service', sectionName: 'admin' }, [81]],
  ['names an object of another group', { group: 'example.org', kind: 'Service' }, []],
  ['names another Service', { name: 'wbe' }, []],
] as const satisfies readonly (readonly [string, Json, readonly number[]])[])
  test(`A policy whose target ${title} closes the ports that it can mean, and is not accepted`, (t) => {
    const rules = [{ backendRefs: [80, 81].map((port) => ({ name: 'web', port })) }];
    const world = worldOf([TWO_PORTS, TWO_SLICES, configMap('ca'), aiming(target)]);
    world.apply([routeJson('two', [{ name: 'edge' }], { rules })]);
    const closedPorts = () =>
      world
        .loadBalancer('pool:default/web')
        .listeners.filter(({ pool }) => pool.members.length === 0)
        .map(({ port }) => port);
    t.deepEqual(closedPorts(), closed);
    if (closed.length === 0) return;
    const condition = world.status('BackendTLSPolicy', 'default/a').ancestors[0]?.conditions[0];
    t.like(condition, { type: 'Accepted', status: 'False', reason: 'TargetNotFound' });
    world.apply([policy('whole', {}, '', 2)]);
    t.deepEqual(closedPorts(), [], 'Another policy verifies them');
  });

test('A policy that names one port well and one badly counts for the one, and closes what the other can mean', (t) => {
  const world = worldOf([
    TWO_PORTS,
    TWO_SLICES,
    configMap('ca'),
    aiming({ sectionName: 'https' }, { sectionName: 'amdin' }),
  ]);
  const rules = [{ backendRefs: [80, 81].map((port) => ({ name: 'web', port })) }];
  world.apply([routeJson('two', [{ name: 'edge' }], { rules })]);
  const { listeners } = world.loadBalancer('pool:default/web');
  t.deepEqual(
    listeners.map(({ port, pool }) => [port, pool.members.length, pool.tls?.serverName]),
    [
      [80, 1, 'a.example'],
      [81, 0, undefined],
    ],
  );
});

test('A rule that retries has a pool of its own, which retries as it says', (t) => {
  const rules = [{ retry: { attempts: 3, codes: [500, 503] }, backendRefs: [{ name: 'web', port: 80 }] }];
  const world = new GatewayWorld([gatewayJson(), routeJson('api', [{ name: 'edge' }], { rules })]);
  const [listener] = world.loadBalancer('pool:default/web.retry3on500on503').listeners;
  t.deepEqual(listener?.pool.retry, { attempts: 3, codes: [500, 503] });
  t.is(listener?.mode, 'http');
});

test('A profile has persistence, retries and a protocol in any combination', (t) => {
  const retry = { attempts: 2, codes: [] };
  for (const words of ['', 'grpc', 'tls', 'grpctls', 'tcp']) {
    t.like(poolProfile(withPersistence(withRetry(retry, words))), {
      ...poolProfile(words),
      isSticky: true,
      retry,
    });
    t.like(poolProfile(withRetry(retry, words)), { ...poolProfile(words), retry });
  }
});
