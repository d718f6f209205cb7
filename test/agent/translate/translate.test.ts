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
        protocol: 'TCP',
        port: 80,
        portName: '',
        family: 'v4',
        addresses: ['192.0.2.10'],
        mode: 'tcp',
        acceptProxy: false,
        allowedCidrs: ['0.0.0.0/0'],
        connectionLimit: 0,
        rateLimit: 0,
        clientTimeout: 600_000,
        pool: {
          algorithm: 'round-robin',
          persistence: 0,
          monitor: undefined,
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

test('A Service that is not ours is ignored, with the reason', (t) => {
  const desired = translated([service({ type: 'ClusterIP' }), slice()]);
  t.is(desired.loadBalancers.size, 0);
  t.deepEqual(desired.ignored.get('default/web'), {
    kind: 'Ignored',
    key: 'default/web',
    reason: 'It is of type ClusterIP, not LoadBalancer',
  });
});

// Conformance: spec.type
test('A change of type away from LoadBalancer takes the load balancer away and frees its address', (t) => {
  const { desired, step } = stepwise();
  step([service({ created: 1 }), service({ name: 'api', created: 2 })]);
  t.deepEqual(step([service({ created: 1, type: 'ClusterIP' })]), ['default/api', 'default/web']);
  t.false(desired.loadBalancers.has('default/web'));
  t.true(desired.ignored.has('default/web'));
  t.deepEqual(listenerOf(desired, 'default:api:tcp:80:v4').addresses, ['192.0.2.10']);
});

// Conformance: spec.type
test('A change of type to LoadBalancer makes the load balancer', (t) => {
  const { desired, step } = stepwise();
  step([service({ type: 'ClusterIP' }), slice()]);
  t.deepEqual(step([service()]), ['default/web']);
  t.deepEqual(membersOf(desired), ['10.0.0.1:8080 ready']);
  t.false(desired.ignored.has('default/web'));
});

test('A Service that is deleted takes its load balancer away', (t) => {
  const { desired, step } = stepwise();
  step([service(), slice()]);
  t.deepEqual(step([], [service()]), ['default/web']);
  t.is(desired.loadBalancers.size + desired.ignored.size, 0);
});

test('A Service without an address is pending and says so', (t) => {
  const desired = translated([service({ loadBalancerIP: undefined }), slice()]);
  t.deepEqual(loadBalancerOf(desired).vips, []);
  t.deepEqual(loadBalancerOf(desired).listeners, []);
  t.deepEqual(reasonsOf(desired), ['AddressPending']);
});

// Conformance: no selector
test('A Service without a selector is served by the slices that others write for it', (t) => {
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
test('With both families each port has two listeners, IPv4 before IPv6, each with members of its family', (t) => {
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
test('A dual-stack Service that got an address of one family is served in that family alone', (t) => {
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
  test(`RequireDualStack with ${families} and ${vips} is served and misses ${missing ?? 'nothing'}`, (t) => {
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

test('RequireDualStack without any address says once that there is none', (t) => {
  const desired = translated([service({ ipFamilyPolicy: 'RequireDualStack', loadBalancerIP: undefined })]);
  t.deepEqual(reasonsOf(desired), ['AddressPending']);
});

test('A Service of a folder says that one of the API of its name is not served, while that one would be ours', (t) => {
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
test('A second family that a living Service gets or loses is a listener more or less', (t) => {
  const { desired, step } = stepwise();
  step([service({ ipFamilies: ['v4'] })]);
  step([service({ ipFamilies: ['v4', 'v6'], annotations: ips('192.0.2.10,2001:db8::10') })]);
  t.is(loadBalancerOf(desired).listeners.length, 2);
  step([service({ ipFamilies: ['v4'] })]);
  t.is(loadBalancerOf(desired).listeners.length, 1);
});

// Conformance: spec.ports[].protocol
test('Ports of TCP, UDP and SCTP on one Service are told apart, and what is not served is said port by port', (t) => {
  const ports = [
    { name: 'dns', port: 53 },
    { name: 'dns-udp', port: 53, protocol: 'UDP' as const },
    { name: 'sig', port: 2905, protocol: 'SCTP' as const },
  ];
  const { listeners, problems } = loadBalancerOf(translated([service({ ports })]));
  t.deepEqual(
    listeners.map(({ name, mode }) => [name, mode]),
    [
      ['default:web:tcp:53:v4', 'tcp'],
      ['default:web:udp:53:v4', 'tcp'],
      ['default:web:sctp:2905:v4', 'tcp'],
    ],
  );
  t.deepEqual(problems, [
    {
      object: 'Service default/web',
      reason: 'ProtocolNotServed',
      message: 'Cannot serve UDP port 53 yet: only TCP is forwarded so far',
      port: { protocol: 'UDP', port: 53 },
    },
    {
      object: 'Service default/web',
      reason: 'ProtocolNotServed',
      message: 'Cannot serve SCTP port 2905 yet: only TCP is forwarded so far',
      port: { protocol: 'SCTP', port: 2905 },
    },
  ]);
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
test('sessionAffinity ClientIP becomes persistence for as many seconds as it says', (t) => {
  t.is(listenerOf(translated([service({ affinitySeconds: 600 })])).pool.persistence, 600);
  t.is(listenerOf(translated([service()])).pool.persistence, 0);
});

test('loadBalancerSourceRanges are kept by family: a list of IPv4 closes IPv6', (t) => {
  const desired = translated([
    service({
      annotations: ips('192.0.2.10,2001:db8::10'),
      loadBalancerSourceRanges: ['198.51.100.0/24'],
    }),
  ]);
  t.deepEqual(listenerOf(desired).allowedCidrs, ['198.51.100.0/24']);
  t.deepEqual(listenerOf(desired, 'default:web:tcp:80:v6').allowedCidrs, []);
});

test('A range that cannot be read is a problem of the Service', (t) => {
  t.deepEqual(reasonsOf(translated([service({ loadBalancerSourceRanges: ['x'] })])), ['InvalidSourceRange']);
});

test('An annotation that cannot be read is a problem, and the default holds', (t) => {
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

test('Zone hints narrow the members to those of our zone', (t) => {
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

test('The annotation for members wins over the setting, both ways', (t) => {
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
test('With members by nodes, nodes are members of Cluster Services also where no pod is ready', (t) => {
  t.is(membersOf(translated([service(withNodePort), node()], { members: 'nodes' })).length, 1);
});

// Conformance: spec.allocateLoadBalancerNodePorts
test('allocateLoadBalancerNodePorts false sends traffic to pods, whatever setting or annotation say', (t) => {
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
test('A port without a nodePort has no members by nodes, and says so', (t) => {
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

test('A change of a node reaches the load balancers whose members are nodes, and no others', (t) => {
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

test('A Service whose members are no longer nodes does not depend on nodes any more', (t) => {
  const { desired, step } = stepwise();
  step([service({ ...withNodePort, annotations: members('nodes') }), node()]);
  t.deepEqual([...desired.dependents.of(['nodes'])], ['default/web']);
  step([service({ ...withNodePort, annotations: members('pods') })]);
  t.deepEqual([...desired.dependents.of(['nodes'])], []);
  step([service({ ...withNodePort, annotations: members('nodes') })]);
  step([service({ type: 'NodePort' })]);
  t.deepEqual([...desired.dependents.of(['nodes'])], []);
});

test('Of two Services on one address, protocol and port the older one listens, the other one says who does', (t) => {
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
  test(`An address that a Service has of ${given} is not taken by an older one that names it`, (t) => {
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

test('A Service of a folder holds its address against any of the API, however old', (t) => {
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
  t.deepEqual(holders(), ['young'], 'Of two of a folder it is the older one');
  step('manifests', [], folder.slice(0, 1));
  t.deepEqual(holders(), ['timeless']);
  // The same object, but now the cluster's own.
  step('api', folder);
  t.deepEqual(holders(), ['timeless']);
  step('manifests', [], folder.slice(1));
  t.deepEqual(holders(), ['old']);
});

test('An address that a Service cannot listen on is still listed among its VIPs', (t) => {
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

test('When the holder of an address goes, the next Service takes over, and only those two change', (t) => {
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

test('When the holder of an address moves to another one, the next Service takes over', (t) => {
  const { desired, step } = stepwise();
  step([service({ name: 'a', created: 1 }), service({ name: 'b', created: 2 })]);
  step([service({ name: 'a', created: 1, loadBalancerIP: '192.0.2.11' })]);
  t.deepEqual(listenerOf(desired, 'default:b:tcp:80:v4').addresses, ['192.0.2.10']);
});

test('A third Service is told when the one that stood before it becomes the holder', (t) => {
  const { desired, step } = stepwise();
  step(['a', 'b', 'c'].map((name, created) => service({ name, created })));
  step([], [service({ name: 'a' })]);
  t.regex(loadBalancerOf(desired, 'default/c').problems[0]?.message ?? '', /Service "default\/b" holds it$/);
});

test('An older Service that appears later takes its address back from a younger one', (t) => {
  const { desired, step } = stepwise();
  step([service({ name: 'young', created: 2 })]);
  t.deepEqual(step([service({ name: 'old', created: 1 })]), ['default/old', 'default/young']);
  t.deepEqual(listenerOf(desired, 'default:young:tcp:80:v4').addresses, []);
});

test('A Service that is not ours holds no address', (t) => {
  const desired = translated([
    service({ name: 'a', created: 1, loadBalancerClass: 'example.org/other' }),
    service({ name: 'b', created: 2 }),
  ]);
  t.deepEqual(listenerOf(desired, 'default:b:tcp:80:v4').addresses, ['192.0.2.10']);
});

test('Objects that arrive again unchanged change nothing', (t) => {
  const { step } = stepwise();
  const objects = [service(), slice(), node()];
  step(objects);
  t.deepEqual(step(objects.map((object) => structuredClone(object))), []);
});

test('A load balancer that is translated again to the same keeps its identity, for those who cache by it', (t) => {
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

test('With when-empty keep-last a Service that loses its last member keeps those it had', (t) => {
  const { desired, step } = stepwise();
  step([service(keepLast), slice({ endpoints: ['10.0.0.1', '10.0.0.2'] })]);
  step([slice({ endpoints: ['10.0.0.1'] })]);
  t.deepEqual(membersOf(desired), ['10.0.0.1:8080 ready']);
  t.deepEqual(step([slice({ endpoints: [endpoint('10.0.0.1', { ready: false })] })]), []);
  t.deepEqual(membersOf(desired), ['10.0.0.1:8080 ready']);
});

test('With when-empty keep-last the members that were kept go as soon as there is a ready one', (t) => {
  const { desired, step } = stepwise();
  step([service(keepLast), slice()]);
  step([slice({ endpoints: [] })]);
  step([slice({ endpoints: ['10.0.0.9'] })]);
  t.deepEqual(membersOf(desired), ['10.0.0.9:8080 ready']);
});

test('With when-empty keep-last a Service that never had members has none', (t) => {
  t.deepEqual(membersOf(translated([service(keepLast)])), []);
});

test('With when-empty keep-last the members are kept while the slices are gone altogether', (t) => {
  const { desired, step } = stepwise();
  step([service(keepLast), slice()]);
  step([], [slice()]);
  t.deepEqual(membersOf(desired), ['10.0.0.1:8080 ready']);
});
