import test from 'ava';
import { Cluster, type ObjectSource } from '../../../agent/kubernetes/cluster.ts';
import type { KubernetesObject } from '../../../agent/kubernetes/objects.ts';
import type { AddressesView } from '../../../agent/translate/service/service-vips.ts';
import type { TranslateSettings } from '../../../agent/translate/translate-settings.ts';
import { endpoint, node, service, slice } from '../../support/values/build.ts';
import {
  FollowedState,
  listenerOf,
  loadBalancerOf,
  membersOf,
  reasonsOf,
  SETTINGS,
  translated,
} from '../../support/values/translated.ts';

const members = (value: 'pods' | 'nodes') => ({ 'headgate.io/members': value });
const ips = (value: string) => ({ 'headgate.io/load-balancer-ips': value });

/** A cluster and its desired state that are changed step by step. */
function stepwise(settings: Partial<TranslateSettings> = {}) {
  const state = new FollowedState(new Cluster(), settings);
  const step = (upserted: readonly KubernetesObject[], removed: readonly KubernetesObject[] = []) =>
    [...state.apply({ upserted, removed })].sort();
  return { desired: state.desired, step };
}

test('A Service with an endpoint becomes a load balancer with every default', (t) => {
  const desired = translated([service(), slice()]);
  t.deepEqual(loadBalancerOf(desired), {
    kind: 'LoadBalancer',
    key: 'default/web',
    namespace: 'default',
    name: 'web',
    vips: [{ address: '192.0.2.10', family: 'v4', source: 'spec.loadBalancerIP' }],
    listeners: [
      {
        name: 'default:web:tcp:80:v4',
        labels: { namespace: 'default', service: 'web', port: '80', protocol: 'TCP', family: 'v4' },
        engine: 'haproxy',
        sourceAddress: 'load-balancer',
        reachedBy: 'clients',
        routing: undefined,
        protocol: 'TCP',
        port: 80,
        portName: '',
        family: 'v4',
        addresses: ['192.0.2.10'],
        mode: 'tcp',
        tls: undefined,
        acceptProxy: false,
        allowedCidrs: ['0.0.0.0/0'],
        connectionLimit: 0,
        rateLimit: 0,
        clientTimeout: 600_000,
        log: 'none',
        pool: {
          algorithm: 'round-robin',
          persistence: 0,
          monitor: undefined,
          tls: undefined,
          httpVersion: '1.1',
          cookie: '',
          proxyProtocol: 'none',
          timeouts: { connect: 1_000, server: 600_000, tunnel: 0, queue: 5_000 },
          memberConnectionLimit: 0,
          whenEmpty: 'reject',
          whenAllDown: 'serve',
          members: [
            {
              name: '10.0.0.1:8080',
              id: 302_946_325,
              address: '10.0.0.1',
              port: 8080,
              weight: 16,
              state: 'ready',
              target: '',
            },
          ],
        },
      },
    ],
    problems: [],
  });
});

test('A Service that the agent does not serve is ignored with a reason', (t) => {
  const desired = translated([service({ type: 'ClusterIP' }), slice()]);
  t.is(desired.loadBalancers.size, 0);
  t.deepEqual(desired.ignored.get('default/web'), {
    kind: 'Ignored',
    key: 'default/web',
    reason: 'It is of type ClusterIP, not LoadBalancer',
  });
});

// Conformance: spec.type
test('A change of type away from LoadBalancer removes the load balancer and frees its address', (t) => {
  const { desired, step } = stepwise();
  step([service({ created: 1 }), service({ name: 'api', created: 2 })]);
  t.deepEqual(step([service({ created: 1, type: 'ClusterIP' })]), ['default/api', 'default/web']);
  t.false(desired.loadBalancers.has('default/web'));
  t.true(desired.ignored.has('default/web'));
  t.deepEqual(listenerOf(desired, 'default:api:tcp:80:v4').addresses, ['192.0.2.10']);
});

// Conformance: spec.type
test('A change of type to LoadBalancer adds the load balancer', (t) => {
  const { desired, step } = stepwise();
  step([service({ type: 'ClusterIP' }), slice()]);
  t.deepEqual(step([service()]), ['default/web']);
  t.deepEqual(membersOf(desired), ['10.0.0.1:8080 ready']);
  t.false(desired.ignored.has('default/web'));
});

test('Deleting a Service removes its load balancer', (t) => {
  const { desired, step } = stepwise();
  step([service(), slice()]);
  t.deepEqual(step([], [service()]), ['default/web']);
  t.is(desired.loadBalancers.size + desired.ignored.size, 0);
});

test('A Service without an address has the problem AddressPending', (t) => {
  const desired = translated([service({ loadBalancerIP: undefined }), slice()]);
  t.deepEqual(loadBalancerOf(desired).vips, []);
  t.deepEqual(loadBalancerOf(desired).listeners, []);
  t.deepEqual(reasonsOf(desired), ['AddressPending']);
});

test('A Service whose address is being chosen has no problem yet', (t) => {
  const followed = new FollowedState(new Cluster(), {}, undefined, undefined, () => true);
  followed.apply({ upserted: [service({ loadBalancerIP: undefined }), slice()], removed: [] });
  t.deepEqual(reasonsOf(followed.desired), []);
});

// Conformance: no selector
test('A Service without a selector has the members of slices that other programs write', (t) => {
  const desired = translated([service(), slice({ name: 'written-by-hand', endpoints: ['203.0.113.9'] })]);
  t.deepEqual(membersOf(desired), ['203.0.113.9:8080 ready']);
});

// Conformance: label kubernetes.io/service-name
test('The slices of another Service or another namespace give no members', (t) => {
  const desired = translated([service(), slice({ serviceName: 'api' }), slice({ namespace: 'other' })]);
  t.deepEqual(membersOf(desired), []);
});

test('Every port of a Service has its listener, in the order of the Service', (t) => {
  const ports = [
    { name: 'https', port: 443 },
    { name: 'http', port: 80 },
  ];
  const endpointPorts = [
    { name: 'http', port: 8080 },
    { name: 'https', port: 8443 },
  ];
  const desired = translated([service({ ports }), slice({ ports: endpointPorts })]);
  t.deepEqual(
    loadBalancerOf(desired).listeners.map(({ name, portName, pool }) => [
      name,
      portName,
      pool.members[0]?.port,
    ]),
    [
      ['default:web:tcp:443:v4', 'https', 8443],
      ['default:web:tcp:80:v4', 'http', 8080],
    ],
  );
});

// Conformance: spec.ipFamilies, spec.ipFamilyPolicy
test('Each port of a dual-stack Service has two listeners, IPv4 before IPv6, with members of their family', (t) => {
  const desired = translated([
    service({ annotations: ips('2001:db8::10,192.0.2.10') }),
    slice(),
    slice({ name: 'web-6', endpoints: ['fd00::1'] }),
  ]);
  t.deepEqual(
    loadBalancerOf(desired).listeners.map(({ name, addresses }) => [name, ...addresses]),
    [
      ['default:web:tcp:80:v4', '192.0.2.10'],
      ['default:web:tcp:80:v6', '2001:db8::10'],
    ],
  );
  t.deepEqual(membersOf(desired), ['10.0.0.1:8080 ready']);
  t.deepEqual(membersOf(desired, 'default:web:tcp:80:v6'), ['fd00::1:8080 ready']);
});

// Conformance: spec.ipFamilies, spec.ipFamilyPolicy
test('A dual-stack Service with an address of one family is served in that family only', (t) => {
  const desired = translated([
    service({ ipFamilies: ['v4', 'v6'], ipFamilyPolicy: 'PreferDualStack' }),
    slice(),
    slice({ name: 'web-6', endpoints: ['fd00::1'] }),
  ]);
  t.deepEqual(
    loadBalancerOf(desired).listeners.map(({ name }) => name),
    ['default:web:tcp:80:v4'],
  );
  t.deepEqual(reasonsOf(desired), []);
});

for (const [ipFamilies, vips, missing] of [
  [[], '192.0.2.10', 'IPv6'],
  [['v4', 'v6'], '192.0.2.10', 'IPv6'],
  [['v4', 'v6'], '2001:db8::10', 'IPv4'],
  [['v4', 'v6'], '192.0.2.10,2001:db8::10', undefined],
  [['v4'], '192.0.2.10', undefined],
] as const) {
  const families = ipFamilies.length === 0 ? 'no families' : ipFamilies.join(' and ');
  // Conformance: spec.ipFamilies, spec.ipFamilyPolicy
  test(`RequireDualStack with ${families} and ${vips} is served and lacks ${missing ?? 'nothing'}`, (t) => {
    const annotations = ips(vips);
    const desired = translated([service({ ipFamilies, ipFamilyPolicy: 'RequireDualStack', annotations })]);
    const { listeners, problems } = loadBalancerOf(desired);
    t.deepEqual(listeners.flatMap(({ addresses }) => addresses).join(), vips);
    const [problem, ...others] = problems;
    t.deepEqual(others, []);
    t.is(problem?.reason, missing === undefined ? undefined : 'AddressPending');
    t.is(problem?.message.includes(`Waiting for an ${missing} address`) ?? false, missing !== undefined);
  });
}

test('RequireDualStack without any address has one problem', (t) => {
  const desired = translated([service({ ipFamilyPolicy: 'RequireDualStack', loadBalancerIP: undefined })]);
  t.deepEqual(reasonsOf(desired), ['AddressPending']);
});

test('A Service of a folder has a problem while it hides a Service of the API that the agent would serve', (t) => {
  const state = new FollowedState(new Cluster());
  const { desired } = state;
  const step = (
    source: ObjectSource,
    upserted: readonly KubernetesObject[],
    removed: typeof upserted = [],
  ) => {
    state.apply({ upserted, removed }, source);
    return reasonsOf(desired).join();
  };
  const ofApi = service({ uid: 'u1', loadBalancerIP: '192.0.2.99' });
  t.is(step('manifests', [service()]), '');
  t.is(step('api', [ofApi]), 'DuplicateObject');
  t.deepEqual(listenerOf(desired).addresses, ['192.0.2.10']);
  t.is(step('api', [{ ...ofApi, type: 'ClusterIP' }]), '');
  t.is(step('api', [ofApi]), 'DuplicateObject');
  t.is(step('api', [], [ofApi]), '');
  t.is(step('api', [ofApi]), 'DuplicateObject');
  t.is(step('manifests', [], [service()]), '');
  t.deepEqual(listenerOf(desired).addresses, ['192.0.2.99']);
});

// Conformance: spec.ipFamilies, spec.ipFamilyPolicy
test('A Service that gains or loses a family gains or loses a listener', (t) => {
  const { desired, step } = stepwise();
  step([service({ ipFamilies: ['v4'] })]);
  step([service({ ipFamilies: ['v4', 'v6'], annotations: ips('192.0.2.10,2001:db8::10') })]);
  t.is(loadBalancerOf(desired).listeners.length, 2);
  step([service({ ipFamilies: ['v4'] })]);
  t.is(loadBalancerOf(desired).listeners.length, 1);
});

// Conformance: spec.ports[].protocol
test('TCP, UDP and SCTP ports of one Service have their own listeners, served by HAProxy or the kernel', (t) => {
  const ports = [
    { name: 'dns', port: 53 },
    { name: 'dns-udp', port: 53, protocol: 'UDP' as const },
    { name: 'sig', port: 2905, protocol: 'SCTP' as const },
  ];
  const { listeners, problems } = loadBalancerOf(translated([service({ ports })]));
  t.deepEqual(
    listeners.map(({ name, mode, engine }) => [name, mode, engine]),
    [
      ['default:web:tcp:53:v4', 'tcp', 'haproxy'],
      ['default:web:udp:53:v4', 'tcp', 'kernel'],
      ['default:web:sctp:2905:v4', 'tcp', 'kernel'],
    ],
  );
  t.deepEqual(problems, []);
});

test('An annotation for TCP is a problem of a Service without TCP ports, and none of one with both', (t) => {
  const annotations = { 'headgate.io/proxy-protocol': 'v2' };
  const udp = { name: 'dns-udp', port: 53, protocol: 'UDP' as const };
  const alone = loadBalancerOf(translated([service({ ports: [udp], annotations })]));
  t.deepEqual(
    alone.problems.map(({ reason, message }) => [reason, message]),
    [
      [
        'InvalidAnnotation',
        'Cannot use annotation "headgate.io/proxy-protocol": it is for TCP ports, and the Service has none',
      ],
    ],
  );
  const both = loadBalancerOf(
    translated([service({ ports: [{ name: 'dns', port: 53 }, udp], annotations })]),
  );
  t.deepEqual(both.problems, []);
  t.deepEqual(
    both.listeners.map(({ pool }) => pool.proxyProtocol),
    ['v2', 'none'],
  );
});

test("The client's address is kept by the kernel, and is a problem of ports that HAProxy forwards", (t) => {
  const client = { 'headgate.io/source-address': 'client' };
  const ports = [
    { name: 'dns', port: 53 },
    { name: 'dns-udp', port: 53, protocol: 'UDP' as const },
  ];
  const both = loadBalancerOf(translated([service({ ports, annotations: client })]));
  t.deepEqual(
    both.listeners.map(({ sourceAddress }) => sourceAddress),
    ['load-balancer', 'client'],
  );
  t.deepEqual(
    both.problems.map(({ reason, message }) => [reason, message]),
    [
      [
        'InvalidAnnotation',
        'Cannot use annotation "headgate.io/source-address": HAProxy forwards its TCP ports from its own address: use "headgate.io/proxy-protocol", or "headgate.io/engine": "kernel"',
      ],
    ],
  );
  const annotations = { ...client, 'headgate.io/engine': 'kernel' };
  const kernel = loadBalancerOf(translated([service({ ports, annotations })]));
  t.deepEqual(
    kernel.listeners.map(({ sourceAddress }) => sourceAddress),
    ['client', 'client'],
  );
  t.deepEqual(kernel.problems, []);
  const annotationDefaults = { ...SETTINGS.annotationDefaults, sourceAddress: 'client' as const };
  t.deepEqual(reasonsOf(translated([service({ ports })], { annotationDefaults })), []);
});

test('Gateway mode is a problem where several hosts serve a VIP at once; direct members are none', (t) => {
  const ports = [{ port: 53, protocol: 'UDP' as const }];
  const annotations = { 'headgate.io/source-address': 'client' };
  const among = { isAmongHosts: true };
  const gateway = loadBalancerOf(translated([service({ ports, annotations })], among));
  t.is(gateway.listeners[0]?.sourceAddress, 'load-balancer');
  t.deepEqual(
    gateway.problems.map(({ reason, message }) => [reason, message]),
    [
      [
        'InvalidAnnotation',
        'Cannot use "headgate.io/source-address": "client" with the setting "hosts": members would answer to another host than the one that the request came through; use "headgate.io/members": "direct"',
      ],
    ],
  );
  const both = { ...annotations, 'headgate.io/members': 'direct' };
  const direct = loadBalancerOf(translated([service({ ports, annotations: both })], among));
  t.is(direct.listeners[0]?.sourceAddress, 'direct');
  t.deepEqual(direct.problems, []);
  t.deepEqual(reasonsOf(translated([service({ annotations })], among)), ['InvalidAnnotation']);
});

test('Direct members are of the kernel alone, and have the port of the Service', (t) => {
  const direct = { 'headgate.io/members': 'direct' };
  const ports = [
    { name: 'dns', port: 53 },
    { name: 'dns-udp', port: 53, protocol: 'UDP' as const },
  ];
  const endpoints = slice({ endpoints: ['10.0.0.1'], ports });
  const both = loadBalancerOf(translated([service({ ports, annotations: direct }), endpoints]));
  const seen = both.listeners.map(({ sourceAddress, pool }) => [sourceAddress, pool.members.length]);
  t.deepEqual(seen, [
    ['load-balancer', 1],
    ['direct', 1],
  ]);
  t.deepEqual(
    both.problems.map(({ reason, message }) => [reason, message]),
    [
      [
        'InvalidAnnotation',
        'Cannot use annotation "headgate.io/members": HAProxy forwards its TCP ports, and needs the answers of members: use "headgate.io/engine": "kernel"',
      ],
    ],
  );
  const annotations = { ...direct, 'headgate.io/engine': 'kernel' };
  const other = slice({ endpoints: ['10.0.0.1'], ports: ports.map((each) => ({ ...each, port: 5353 })) });
  const moved = loadBalancerOf(translated([service({ ports, annotations }), other]));
  t.true(moved.listeners.every(({ pool }) => pool.members.length === 0));
  t.is(
    moved.problems[0]?.message,
    'Cannot use annotation "headgate.io/members": "direct" for TCP port 53: members have port 5353, and get packets unchanged; let "targetPort" be 53',
  );
});

test('Mode http is for TCP ports only', (t) => {
  const ports = [
    { name: 'a', port: 80 },
    { name: 'b', port: 80, protocol: 'UDP' as const },
  ];
  const desired = translated([service({ ports, annotations: { 'headgate.io/mode': 'http' } })]);
  t.deepEqual(
    loadBalancerOf(desired).listeners.map(({ mode }) => mode),
    ['http', 'tcp'],
  );
});

// Conformance: spec.sessionAffinity, sessionAffinityConfig
test('sessionAffinity ClientIP becomes persistence with its timeout', (t) => {
  t.is(listenerOf(translated([service({ affinitySeconds: 600 })])).pool.persistence, 600);
  t.is(listenerOf(translated([service()])).pool.persistence, 0);
});

test('loadBalancerSourceRanges apply by family: a list of IPv4 ranges allows no IPv6 clients', (t) => {
  const desired = translated([
    service({
      annotations: ips('192.0.2.10,2001:db8::10'),
      loadBalancerSourceRanges: ['198.51.100.0/24'],
    }),
  ]);
  t.deepEqual(listenerOf(desired).allowedCidrs, ['198.51.100.0/24']);
  t.deepEqual(listenerOf(desired, 'default:web:tcp:80:v6').allowedCidrs, []);
});

test('An invalid range is a problem of the Service', (t) => {
  t.deepEqual(reasonsOf(translated([service({ loadBalancerSourceRanges: ['x'] })])), ['InvalidSourceRange']);
});

test('An invalid annotation is a problem, and the default applies', (t) => {
  const desired = translated([service({ annotations: { 'headgate.io/algorithm': 'best' } })]);
  t.is(listenerOf(desired).pool.algorithm, 'round-robin');
  t.deepEqual(reasonsOf(desired), ['InvalidAnnotation']);
});

test('Defaults of annotations come from the settings', (t) => {
  const annotationDefaults = { ...SETTINGS.annotationDefaults, algorithm: 'random' as const };
  t.is(listenerOf(translated([service()], { annotationDefaults })).pool.algorithm, 'random');
});

test('A terminating endpoint that serves is a draining member', (t) => {
  const endpoints = [endpoint('10.0.0.1'), endpoint('10.0.0.2', { terminating: true })];
  t.deepEqual(membersOf(translated([service(), slice({ endpoints })])), [
    '10.0.0.1:8080 ready',
    '10.0.0.2:8080 drain',
  ]);
});

test("Zone hints narrow the members to those of this host's zone", (t) => {
  const endpoints = ['a', 'b'].map((zone, at) => endpoint(`10.0.0.${at + 1}`, { forZones: [zone] }));
  t.deepEqual(membersOf(translated([service(), slice({ endpoints })], { zone: 'b' })), [
    '10.0.0.2:8080 ready',
  ]);
});

// Conformance: endpoints[].hints.forZones
test('Zone hints are ignored with externalTrafficPolicy Local', (t) => {
  const endpoints = ['a', 'b'].map((zone, at) => endpoint(`10.0.0.${at + 1}`, { forZones: [zone] }));
  const objects = [service({ externalTrafficPolicy: 'Local' }), slice({ endpoints })];
  t.is(membersOf(translated(objects, { zone: 'b' })).length, 2);
});

// Conformance: spec.externalTrafficPolicy
test('With members by pods all ready pods are used under both external traffic policies', (t) => {
  for (const externalTrafficPolicy of ['Cluster', 'Local'] as const) {
    const objects = [service({ externalTrafficPolicy }), slice({ endpoints: ['10.0.0.1', '10.0.0.2'] })];
    t.is(membersOf(translated(objects)).length, 2);
  }
});

const withNodePort = { ports: [{ port: 80, nodePort: 30_080 }] };

test('The annotation for members has precedence over the setting', (t) => {
  const objects = (annotations: Record<string, string>) => [
    service({ ...withNodePort, annotations }),
    slice(),
    node(),
  ];
  t.deepEqual(membersOf(translated(objects(members('nodes')))), ['198.51.100.1:30080 ready']);
  t.deepEqual(membersOf(translated(objects({}), { members: 'nodes' })), ['198.51.100.1:30080 ready']);
  t.deepEqual(membersOf(translated(objects(members('pods')), { members: 'nodes' })), ['10.0.0.1:8080 ready']);
});

// Conformance: spec.externalTrafficPolicy
test('With members by nodes and externalTrafficPolicy Local, nodes with ready endpoints are members', (t) => {
  const objects = [
    service({ ...withNodePort, externalTrafficPolicy: 'Local' }),
    slice({
      endpoints: [
        endpoint('10.0.0.1', { nodeName: 'a' }),
        endpoint('10.0.0.2', { nodeName: 'b', ready: false }),
      ],
    }),
    node({ name: 'a' }),
    node({ name: 'b', internalIPs: ['198.51.100.2'] }),
    node({ name: 'c', internalIPs: ['198.51.100.3'] }),
  ];
  t.deepEqual(membersOf(translated(objects, { members: 'nodes' })), ['198.51.100.1:30080 ready']);
});

// Conformance: spec.externalTrafficPolicy
test('With members by nodes and externalTrafficPolicy Local, the last pods that terminate count', (t) => {
  const objects = [
    service({ ...withNodePort, externalTrafficPolicy: 'Local' }),
    slice({ endpoints: [endpoint('10.0.0.1', { nodeName: 'a', terminating: true })] }),
    node({ name: 'a' }),
  ];
  t.deepEqual(membersOf(translated(objects, { members: 'nodes' })), ['198.51.100.1:30080 ready']);
});

// Conformance: spec.externalTrafficPolicy
test('With members by nodes, nodes are members of Cluster Services even if no pod is ready', (t) => {
  t.is(membersOf(translated([service(withNodePort), node()], { members: 'nodes' })).length, 1);
});

// Conformance: spec.allocateLoadBalancerNodePorts
test('allocateLoadBalancerNodePorts false sends traffic to pods, regardless of the setting and the annotation', (t) => {
  const objects = [
    service({ allocateLoadBalancerNodePorts: false, annotations: members('nodes') }),
    slice(),
    node(),
  ];
  const desired = translated(objects, { members: 'nodes' });
  t.deepEqual(membersOf(desired), ['10.0.0.1:8080 ready']);
  t.deepEqual(reasonsOf(desired), []);
});

// Conformance: spec.allocateLoadBalancerNodePorts
test('A port without a nodePort has no members by nodes, and a problem', (t) => {
  const ports = [
    { name: 'a', port: 80, nodePort: 30_080 },
    { name: 'b', port: 81 },
  ];
  const desired = translated([service({ ports }), node()], { members: 'nodes' });
  t.is(membersOf(desired).length, 1);
  t.deepEqual(membersOf(desired, 'default:web:tcp:81:v4'), []);
  t.like(loadBalancerOf(desired).problems, {
    length: 1,
    0: { reason: 'NodePortMissing', port: { protocol: 'TCP', port: 81 } },
  });
});

test('A change of a node changes only load balancers whose members are nodes', (t) => {
  const { desired, step } = stepwise();
  step([
    service({ ...withNodePort, annotations: members('nodes') }),
    service({ name: 'api', ports: [81] }),
    node(),
  ]);
  t.deepEqual(step([node({ name: 'node-2', internalIPs: ['198.51.100.2'] })]), ['default/web']);
  t.deepEqual(membersOf(desired), ['198.51.100.1:30080 ready', '198.51.100.2:30080 ready']);
  t.deepEqual(step([node({ labels: { 'node.kubernetes.io/exclude-from-external-load-balancers': '' } })]), [
    'default/web',
  ]);
  t.deepEqual(step([], [node({ name: 'node-2' })]), ['default/web']);
  t.deepEqual(membersOf(desired), []);
});

test('A Service whose members are no longer nodes no longer depends on nodes', (t) => {
  const { desired, step } = stepwise();
  step([service({ ...withNodePort, annotations: members('nodes') }), node()]);
  t.deepEqual([...desired.dependents.of(['nodes'])], ['default/web']);
  step([service({ ...withNodePort, annotations: members('pods') })]);
  t.deepEqual([...desired.dependents.of(['nodes'])], []);
  step([service({ ...withNodePort, annotations: members('nodes') })]);
  step([service({ type: 'NodePort' })]);
  t.deepEqual([...desired.dependents.of(['nodes'])], []);
});

test('The older of two Services on one address, protocol and port listens, and the problem of the other names it', (t) => {
  const desired = translated([
    service({ name: 'young', created: 2, ports: [80, 81].map((port) => ({ name: `p${port}`, port })) }),
    service({ name: 'old', created: 1 }),
  ]);
  t.deepEqual(listenerOf(desired, 'default:old:tcp:80:v4').addresses, ['192.0.2.10']);
  t.deepEqual(reasonsOf(desired, 'default/old'), []);
  t.deepEqual(listenerOf(desired, 'default:young:tcp:80:v4').addresses, []);
  t.deepEqual(listenerOf(desired, 'default:young:tcp:81:v4').addresses, ['192.0.2.10']);
  t.deepEqual(loadBalancerOf(desired, 'default/young').problems, [
    {
      object: 'Service default/young',
      reason: 'AddressInUse',
      message: 'Cannot listen on 192.0.2.10 TCP port 80: the Service "default/old" holds it',
      port: { protocol: 'TCP', port: 80 },
    },
  ]);
});

for (const [given, young] of [
  ['a pool', {}],
  ['its status', { loadBalancerIP: undefined, statusIPs: ['192.0.2.10'] }],
  ['its own choice, as its status shows,', { statusIPs: ['192.0.2.10'] }],
] as const)
  test(`An address that a Service has from ${given} does not move to an older Service that names it`, (t) => {
    const ofPools: AddressesView = (key) =>
      given === 'a pool' && key === 'default/young'
        ? { addresses: [{ address: '192.0.2.10', ports: [] }], problems: [] }
        : undefined;
    const state = new FollowedState(new Cluster(), {}, ofPools);
    const { desired } = state;
    for (const upserted of [
      [service({ name: 'young', created: 9, ...young })],
      [service({ name: 'old', created: 1 })],
    ]) {
      state.apply({ upserted, removed: [] });
      t.deepEqual(listenerOf(desired, 'default:young:tcp:80:v4').addresses, ['192.0.2.10']);
    }
    t.deepEqual(listenerOf(desired, 'default:old:tcp:80:v4').addresses, []);
  });

test('A Service of a folder has precedence for its address over older Services of the API', (t) => {
  const folder = [
    service({ name: 'young', created: 9 }),
    service({ name: 'timeless', created: Number.POSITIVE_INFINITY }),
  ];
  const state = new FollowedState(new Cluster());
  const { desired } = state;
  const step = (
    source: ObjectSource,
    upserted: readonly KubernetesObject[],
    removed: readonly KubernetesObject[] = [],
  ) => state.apply({ upserted, removed }, source);
  const holders = () =>
    ['young', 'timeless', 'old'].filter((name) =>
      desired.loadBalancers.get(`default/${name}`)?.listeners.some(({ addresses }) => addresses.length > 0),
    );
  step('api', [service({ name: 'old', created: 1 })]);
  t.deepEqual(holders(), ['old']);
  step('manifests', folder);
  t.deepEqual(holders(), ['timeless'], 'Of two of a folder it is the first by name, whatever their age');
  // The same object, now from the API server.
  step('api', folder);
  t.deepEqual(holders(), ['timeless']);
  step('manifests', [], folder.slice(1));
  t.deepEqual(holders(), ['young']);
  step('manifests', [], folder.slice(0, 1));
  t.deepEqual(holders(), ['old']);
});

test('The VIPs of a Service contain also addresses on which it cannot listen', (t) => {
  const desired = translated([service({ name: 'a', created: 1 }), service({ name: 'b', created: 2 })]);
  t.is(loadBalancerOf(desired, 'default/b').vips.length, 1);
});

// Conformance: spec.ports[].protocol
test('Two Services share an address on different ports, or on different protocols of one port', (t) => {
  const desired = translated([
    service({ name: 'a', ports: [80] }),
    service({ name: 'b', ports: [81] }),
    service({ name: 'c', ports: [{ port: 80, protocol: 'UDP' }] }),
  ]);
  for (const name of ['a:tcp:80', 'b:tcp:81', 'c:udp:80'])
    t.deepEqual(listenerOf(desired, `default:${name}:v4`).addresses, ['192.0.2.10']);
});

test('If the Service that has an address is deleted, the next one takes over, and only these two change', (t) => {
  const { desired, step } = stepwise();
  step([
    service({ name: 'a', created: 1 }),
    service({ name: 'b', created: 2 }),
    service({ name: 'c', loadBalancerIP: '192.0.2.11' }),
  ]);
  t.deepEqual(step([], [service({ name: 'a' })]), ['default/a', 'default/b']);
  t.deepEqual(listenerOf(desired, 'default:b:tcp:80:v4').addresses, ['192.0.2.10']);
  t.deepEqual(reasonsOf(desired, 'default/b'), []);
});

test('If the Service that has an address moves to another address, the next one takes over', (t) => {
  const { desired, step } = stepwise();
  step([service({ name: 'a', created: 1 }), service({ name: 'b', created: 2 })]);
  step([service({ name: 'a', created: 1, loadBalancerIP: '192.0.2.11' })]);
  t.deepEqual(listenerOf(desired, 'default:b:tcp:80:v4').addresses, ['192.0.2.10']);
});

test('The problem of a third Service changes if the second one takes over the address', (t) => {
  const { desired, step } = stepwise();
  step(['a', 'b', 'c'].map((name, created) => service({ name, created })));
  step([], [service({ name: 'a' })]);
  t.regex(loadBalancerOf(desired, 'default/c').problems[0]?.message ?? '', /Service "default\/b" holds it$/);
});

test('A Service that appears later does not take an address, whatever its age and name', (t) => {
  const { desired, step } = stepwise();
  step([service({ name: 'web', created: 2 })]);
  t.deepEqual(step([service({ name: 'old', created: 1 })]), ['default/old']);
  t.deepEqual(listenerOf(desired, 'default:web:tcp:80:v4').addresses, ['192.0.2.10']);
  t.deepEqual(listenerOf(desired, 'default:old:tcp:80:v4').addresses, []);
});

test('A new manifest does not take an address, whatever its name, creationTimestamp and status', (t) => {
  const state = new FollowedState(new Cluster());
  const created = Number.POSITIVE_INFINITY;
  state.apply({ upserted: [service({ name: 'web', created })], removed: [] }, 'manifests');
  const taken = service({ name: 'taken', created: 1, statusIPs: ['192.0.2.10'] });
  state.apply({ upserted: [taken], removed: [] }, 'manifests');
  t.deepEqual(listenerOf(state.desired, 'default:web:tcp:80:v4').addresses, ['192.0.2.10']);
  t.deepEqual(reasonsOf(state.desired, 'default/taken'), ['AddressInUse']);
});

test('A Service that the agent does not serve takes no address', (t) => {
  const desired = translated([
    service({ name: 'a', created: 1, loadBalancerClass: 'example.org/other' }),
    service({ name: 'b', created: 2 }),
  ]);
  t.deepEqual(listenerOf(desired, 'default:b:tcp:80:v4').addresses, ['192.0.2.10']);
});

test('Unchanged objects that arrive again change nothing', (t) => {
  const { step } = stepwise();
  const objects = [service(), slice(), node()];
  step(objects);
  t.deepEqual(step(objects.map((object) => structuredClone(object))), []);
});

test('A load balancer with an equal translation stays the same object', (t) => {
  const state = new FollowedState(new Cluster());
  const { desired } = state;
  state.apply({ upserted: [service(), slice()], removed: [] });
  const before = loadBalancerOf(desired);
  t.is(state.translate(['default/web']).size, 0);
  t.is(loadBalancerOf(desired), before);
});

const keepLast = { annotations: { 'headgate.io/when-empty': 'keep-last' } };

test('With when-empty reject a Service that loses its last member has none', (t) => {
  const { desired, step } = stepwise();
  step([service(), slice()]);
  step([slice({ endpoints: [] })]);
  t.deepEqual(membersOf(desired), []);
});

test('With when-empty keep-last a Service that loses its last member keeps its last members', (t) => {
  const { desired, step } = stepwise();
  step([service(keepLast), slice({ endpoints: ['10.0.0.1', '10.0.0.2'] })]);
  step([slice({ endpoints: ['10.0.0.1'] })]);
  t.deepEqual(membersOf(desired), ['10.0.0.1:8080 ready']);
  t.deepEqual(step([slice({ endpoints: [endpoint('10.0.0.1', { ready: false })] })]), []);
  t.deepEqual(membersOf(desired), ['10.0.0.1:8080 ready']);
});

test('With when-empty keep-last a ready member replaces the kept members', (t) => {
  const { desired, step } = stepwise();
  step([service(keepLast), slice()]);
  step([slice({ endpoints: [] })]);
  step([slice({ endpoints: ['10.0.0.9'] })]);
  t.deepEqual(membersOf(desired), ['10.0.0.9:8080 ready']);
});

test('With when-empty keep-last a Service that never had members has none', (t) => {
  t.deepEqual(membersOf(translated([service(keepLast)])), []);
});

test('With when-empty keep-last the members are kept also without any slice', (t) => {
  const { desired, step } = stepwise();
  step([service(keepLast), slice()]);
  step([], [slice()]);
  t.deepEqual(membersOf(desired), ['10.0.0.1:8080 ready']);
});
