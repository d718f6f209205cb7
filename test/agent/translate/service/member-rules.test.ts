import test from 'ava';
import { Cluster } from '../../../../agent/kubernetes/cluster.ts';
import { agentPorts } from '../../../../agent/translate/agent-ports.ts';
import { endpoint, service, slice } from '../../../support/values/build.ts';
import { GatewayWorld } from '../../../support/values/gateway-world.ts';
import { gatewayJson, routeJson } from '../../../support/values/gateways.ts';
import {
  FollowedState,
  loadBalancerOf,
  membersOf,
  reasonsOf,
  translated,
} from '../../../support/values/translated.ts';

const METADATA = [
  '168.63.129.16',
  '100.100.100.200',
  '192.0.0.192',
  'fd00:ec2::254',
  'fd20:ce::254',
  'fd00:42::42',
  '64:ff9b::a9fe:a9fe',
  '64:ff9b:1::a9fe:a9fe',
  '64:ff9b::6464:64c8',
  '2002:a9fe:a9fe::1',
];

for (const address of METADATA) {
  test(`The metadata service ${address} is no member, and others of its EndpointSlice are`, (t) => {
    const isV6 = address.includes(':');
    const near = isV6 ? 'fd00:ec3::254' : '168.63.129.17';
    const desired = translated([
      service({ loadBalancerIP: isV6 ? '2001:db8::10' : '192.0.2.10' }),
      slice({ endpoints: [endpoint(address), endpoint(near)] }),
    ]);
    t.deepEqual(membersOf(desired, `default:web:tcp:80:${isV6 ? 'v6' : 'v4'}`), [`${near}:8080 ready`]);
    t.deepEqual(loadBalancerOf(desired).problems, [
      {
        object: 'Service default/web',
        reason: 'InvalidEndpoint',
        message: `Cannot send to ${address}:8080 for port 80: it is the address of a cloud's metadata service`,
        port: { protocol: 'TCP', port: 80 },
      },
    ]);
  });
}

test('An address of many machines is no member', (t) => {
  const near = ['223.255.255.255', '240.0.0.1', '255.255.255.254'];
  const desired = translated([
    service(),
    slice({ endpoints: ['239.1.2.3', '255.255.255.255', ...near].map((address) => endpoint(address)) }),
  ]);
  t.deepEqual(
    membersOf(desired),
    near.map((address) => `${address}:8080 ready`),
  );
  t.is(
    loadBalancerOf(desired).problems[0]?.message,
    'Cannot send to 239.1.2.3:8080 for port 80: it is a multicast or broadcast address (and 1 more endpoint)',
  );
  const six = translated([
    service({ loadBalancerIP: '2001:db8::10' }),
    slice({ endpoints: [endpoint('ff0e::1'), endpoint('ff::1')] }),
  ]);
  t.deepEqual(membersOf(six, 'default:web:tcp:80:v6'), ['ff::1:8080 ready']);
});

test('Settings refuse members by range and by a missing targetRef, with one Problem for a port', (t) => {
  const endpoints = ['10.0.0.1', '10.0.0.2', '10.0.1.1'].map((address) => endpoint(address));
  const objects = [
    service(),
    slice({ endpoints: [...endpoints, endpoint('10.0.1.2', { target: 'Pod/a' })] }),
  ];
  const outcome = (settings: Parameters<typeof translated>[1]) => {
    const desired = translated(objects, settings);
    const { problems } = loadBalancerOf(desired);
    return { members: membersOf(desired), messages: problems.map(({ message }) => message) };
  };
  t.is(outcome({}).members.length, 4);
  t.deepEqual(outcome({ refusedMembers: ['10.0.0.0/24'] }), {
    members: ['10.0.1.1:8080 ready', '10.0.1.2:8080 ready'],
    messages: [
      'Cannot send to 10.0.0.1:8080 for port 80: the setting refusedMembers has its address (and 1 more endpoint)',
    ],
  });
  t.deepEqual(outcome({ memberRanges: ['10.0.0.0/24', 'fd00::/8'] }), {
    members: ['10.0.0.1:8080 ready', '10.0.0.2:8080 ready'],
    messages: [
      'Cannot send to 10.0.1.1:8080 for port 80: the setting memberRanges does not have its address (and 1 more endpoint)',
    ],
  });
  t.deepEqual(outcome({ membersWithoutTarget: false }), {
    members: ['10.0.1.2:8080 ready'],
    messages: [
      'Cannot send to 10.0.0.1:8080 for port 80: it has no targetRef, and the setting membersWithoutTarget is off (and 2 more endpoints)',
    ],
  });
});

test('A VIP and port of this load balancer is no member: neither its own Service’s nor another’s', (t) => {
  const web = (address: string) =>
    slice({ endpoints: [endpoint(address), endpoint('10.0.0.9')], ports: [{ port: 80 }] });
  const api = service({ name: 'api', loadBalancerIP: '192.0.2.11' });
  const other = slice({ serviceName: 'api', endpoints: [endpoint('192.0.2.10')], ports: [{ port: 80 }] });
  const ring = translated([service(), web('192.0.2.11'), api, other]);
  t.deepEqual(membersOf(ring), ['10.0.0.9:80 ready']);
  t.deepEqual(membersOf(ring, 'default:api:tcp:80:v4'), []);
  const own = translated([service(), web('192.0.2.10')]);
  t.deepEqual(membersOf(own), ['10.0.0.9:80 ready']);
  t.deepEqual(loadBalancerOf(own).problems, [
    {
      object: 'Service default/web',
      reason: 'InvalidEndpoint',
      message:
        'Cannot send to 192.0.2.10:80 for port 80: this load balancer listens there itself, and a connection would come back to it without end',
      port: { protocol: 'TCP', port: 80 },
    },
  ]);
});

test('Another port of a VIP is a member', (t) => {
  const desired = translated([service(), slice({ endpoints: [endpoint('192.0.2.10')] })]);
  t.deepEqual(membersOf(desired), ['192.0.2.10:8080 ready']);
});

test('A pool that keeps its last members does not keep one that has become a VIP', (t) => {
  const annotations = { 'headgate.io/when-empty': 'keep-last' };
  const desired = translated([
    service({ annotations }),
    slice({ endpoints: [endpoint('192.0.2.10')], ports: [{ port: 80 }] }),
  ]);
  t.deepEqual(membersOf(desired), []);
});

test('A member leaves its pool when its address and port become a VIP, and returns when they are none any more', (t) => {
  const state = new FollowedState(new Cluster());
  const { desired } = state;
  const api = service({ name: 'api', loadBalancerIP: '10.0.0.1', ports: [{ port: 8080 }] });
  state.apply({ upserted: [service(), slice()], removed: [] });
  t.deepEqual(membersOf(desired), ['10.0.0.1:8080 ready']);
  t.deepEqual([...state.apply({ upserted: [api], removed: [] })].sort(), ['default/api', 'default/web']);
  t.deepEqual(membersOf(desired), []);
  const elsewhere = service({ ...api, ports: [{ port: 81 }] });
  t.deepEqual([...state.apply({ upserted: [elsewhere], removed: [] })].sort(), [
    'default/api',
    'default/web',
  ]);
  t.deepEqual(membersOf(desired), ['10.0.0.1:8080 ready']);
  state.apply({ upserted: [api], removed: [] });
  t.deepEqual(reasonsOf(desired), ['InvalidEndpoint']);
  state.apply({ upserted: [], removed: [api] });
  t.deepEqual(membersOf(desired), ['10.0.0.1:8080 ready']);
  t.deepEqual(reasonsOf(desired), []);
});

const LISTENING: Parameters<typeof agentPorts>[0] = {
  listen: { address: '127.0.0.1', port: 9180 },
  vrrp: { address: '10.0.9.1', peers: ['10.0.9.2'] },
  pairAddress: '',
  pairPeer: '10.0.8.2',
  pairPort: 9181,
  pairTablesPort: 9182,
  connectionSync: true,
  connectionSyncPort: 3780,
};

for (const [address, port, protocol, changes] of [
  ['127.0.0.1', 9180, 'TCP', {}],
  ['127.0.0.9', 9180, 'TCP', {}],
  ['10.0.9.1', 9180, 'TCP', { listen: { address: '0.0.0.0', port: 9180 } }],
  ['10.0.9.2', 9180, 'TCP', { listen: { address: '10.0.9.1', port: 9180 } }],
  ['10.0.7.1', 9180, 'TCP', { listen: { address: '10.0.7.1', port: 9180 } }],
  ['10.0.9.1', 9181, 'TCP', {}],
  ['10.0.9.2', 9181, 'TCP', {}],
  ['10.0.8.2', 9182, 'TCP', {}],
  ['10.0.9.2', 3780, 'UDP', {}],
] as const)
  test(`A member may not be a port of the agents: ${address} ${protocol} ${port} with ${JSON.stringify(changes)}`, (t) => {
    const settings = { agentPorts: agentPorts({ ...LISTENING, ...changes }) };
    const ports = (at: number) => [{ port: at, protocol }];
    const outcome = (at: number) => {
      const endpoints = [endpoint(address), endpoint('10.0.0.1')];
      const desired = translated(
        [service({ ports: ports(80) }), slice({ endpoints, ports: ports(at) })],
        settings,
      );
      const { problems } = loadBalancerOf(desired);
      return {
        members: membersOf(desired, `default:web:${protocol.toLowerCase()}:80:v4`),
        messages: problems.map(({ reason, message }) => `${reason}: ${message}`),
      };
    };
    t.deepEqual(outcome(port), {
      members: [`10.0.0.1:${port} ready`],
      messages: [
        `InvalidEndpoint: Cannot send to ${address}:${port} for port 80: the agent of this load balancer, or of its peer, listens there`,
      ],
    });
    t.is(outcome(port + 1_000).members.length, 2, 'another port of the host');
  });

test('Routes do not send to a port of the agents either', (t) => {
  const world = new GatewayWorld(
    [
      gatewayJson(),
      routeJson('api', [{ name: 'edge' }]),
      slice({ endpoints: [endpoint('10.0.9.2'), endpoint('10.0.0.1')], ports: [{ port: 9182 }] }),
    ],
    { agentPorts: agentPorts(LISTENING) },
  );
  const { listeners, problems } = world.loadBalancer('pool:default/web');
  t.deepEqual(
    listeners.flatMap(({ pool }) => pool.members.map(({ name }) => name)),
    ['10.0.0.1:9182'],
  );
  t.regex(problems[0]?.message ?? '', /^Cannot send to 10\.0\.9\.2:9182 for port 80: the agent of this/);
});

test('A port that the system chooses, and ports of a host without a pair, are not known', (t) => {
  t.deepEqual(
    agentPorts({
      ...LISTENING,
      ...{ listen: { address: '127.0.0.1', port: 0 }, vrrp: undefined, pairPeer: '' },
    }),
    [],
  );
});
