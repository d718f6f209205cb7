import test from 'ava';
import { Cluster } from '../../../agent/kubernetes/cluster.ts';
import type { NamespaceBounds } from '../../../agent/model/desired-state.ts';
import { service, slice } from '../../support/values/build.ts';
import { FollowedState, loadBalancerOf } from '../../support/values/translated.ts';

const BOUNDS: NamespaceBounds = { maxServersPerNamespace: 1_000, maxChecksPerNamespace: 500 };
const MONITORED = { 'headgate.io/health-monitor': 'tcp' };

type Size = Omit<NonNullable<Parameters<typeof service>[0]>, 'ports'> & {
  readonly ports: number;
  readonly endpoints: number;
};

/** A Service and its slice with that many ports and endpoints. */
function sized(name: string, { ports, endpoints, ...given }: Size) {
  const numbers = Array.from({ length: ports }, (_, at) => ({ name: `p${at}`, port: 1_000 + at }));
  const addresses = Array.from({ length: endpoints }, (_, at) => `10.0.${at >> 8}.${at & 255}`);
  return [
    service({ name, ...given, ports: numbers }),
    slice({
      namespace: given.namespace ?? 'default',
      serviceName: name,
      name: `${name}-1`,
      endpoints: addresses,
      ports: numbers,
    }),
  ] as const;
}

function stateOf(...objects: readonly ReturnType<typeof sized>[]): FollowedState {
  const state = new FollowedState(new Cluster(), {}, undefined, BOUNDS);
  state.apply({ upserted: objects.flat(), removed: [] });
  return state;
}

/** The listeners with an address, and the members of the first one. */
function sizeOf({ desired }: FollowedState, key: string): readonly [number, number] {
  const { listeners } = loadBalancerOf(desired, key);
  const served = listeners.filter(({ addresses }) => addresses.length > 0);
  return [served.length, served[0]?.pool.members.length ?? 0];
}

const small = sized('web', { ports: 2, endpoints: 20 });
const greedy = sized('greedy', {
  ports: 50,
  endpoints: 170,
  loadBalancerIP: '192.0.2.11',
  annotations: MONITORED,
});

test('A Service that asks for more checks than its namespace may have is limited and named, the others keep all', (t) => {
  const few = sized('greedy', {
    ports: 5,
    endpoints: 170,
    loadBalancerIP: '192.0.2.11',
    annotations: MONITORED,
  });
  const { desired } = stateOf(small, few);
  const state = stateOf(small, few);
  t.deepEqual(sizeOf(state, 'default/web'), [2, 20]);
  t.deepEqual(loadBalancerOf(desired).problems, []);
  t.deepEqual(sizeOf(state, 'default/greedy'), [5, 95]);
  t.deepEqual(loadBalancerOf(desired, 'default/greedy').problems, [
    {
      object: 'Service default/greedy',
      reason: 'ShareExceeded',
      message:
        'Cannot serve all of its ports and members: namespace "default" may have 500 sockets and health checks (setting maxChecksPerNamespace), of which the share of one Service is 480; use fewer ports or endpoints, or no health monitor',
    },
  ]);
});

test('A Service with too many ports keeps the first ones, each with the same number of members', (t) => {
  const many = sized('greedy', { ports: 500, endpoints: 20, loadBalancerIP: '192.0.2.11' });
  const state = stateOf(small, many);
  t.deepEqual(sizeOf(state, 'default/web'), [2, 20]);
  t.deepEqual(sizeOf(state, 'default/greedy'), [89, 2]);
  const { listeners, problems } = loadBalancerOf(state.desired, 'default/greedy');
  t.deepEqual(
    new Set(listeners.filter(({ addresses }) => addresses.length > 0).map(({ pool }) => pool.members.length)),
    new Set([2]),
  );
  t.is(listeners.find(({ addresses }) => addresses.length === 0)?.port, 1_089);
  t.is(
    problems[0]?.message,
    'Cannot serve all of its ports and members: namespace "default" may have 1000 servers (setting maxServersPerNamespace), of which the share of one Service is 896, and a port with its addresses and source ranges counts as 5; use fewer ports, endpoints or source ranges',
  );
});

test('Source ranges and addresses of ports count, so that a Service with many of them is limited, too', (t) => {
  const ranges = Array.from({ length: 400 }, (_, at) => `10.1.${at >> 8}.${at & 255}/32`);
  const ofRanges = stateOf(
    small,
    sized('greedy', {
      ports: 50,
      endpoints: 1,
      loadBalancerIP: '192.0.2.11',
      loadBalancerSourceRanges: ranges,
    }),
  );
  t.deepEqual(sizeOf(ofRanges, 'default/web'), [2, 20]);
  t.deepEqual(sizeOf(ofRanges, 'default/greedy'), [4, 1]);
  t.regex(
    loadBalancerOf(ofRanges.desired, 'default/greedy').problems[0]?.message ?? '',
    /the share of one Service is 896, and a port with its addresses and source ranges counts as 105; use fewer ports, endpoints or source ranges$/,
  );
  const statusIPs = Array.from({ length: 100 }, (_, at) => `192.0.2.${100 + at}`);
  const ofAddresses = stateOf(
    sized('greedy', { ports: 50, endpoints: 1, loadBalancerIP: undefined, statusIPs }),
  );
  t.deepEqual(sizeOf(ofAddresses, 'default/greedy'), [1, 1]);
});

test('A Service of which not even one port is within the share has no port', (t) => {
  const ranges = Array.from({ length: 4_000 }, (_, at) => `10.1.${at >> 8}.${at & 255}/32`);
  const state = stateOf(
    small,
    sized('greedy', {
      ports: 1,
      endpoints: 1,
      loadBalancerIP: '192.0.2.11',
      loadBalancerSourceRanges: ranges,
    }),
  );
  t.deepEqual(sizeOf(state, 'default/web'), [2, 20]);
  t.deepEqual(sizeOf(state, 'default/greedy'), [0, 0]);
});

test('Ports without members take descriptors of their namespace', (t) => {
  const bounds = { ...BOUNDS, maxServersPerNamespace: 1_000_000 };
  const state = new FollowedState(new Cluster(), {}, undefined, bounds);
  const many = sized('greedy', { ports: 2_000, endpoints: 1, loadBalancerIP: '192.0.2.11' });
  state.apply({ upserted: [...small, ...many], removed: [] });
  t.deepEqual(sizeOf(state, 'default/web'), [2, 20]);
  t.deepEqual(sizeOf(state, 'default/greedy'), [240, 1]);
});

test('A namespace is limited for itself', (t) => {
  const state = stateOf(
    sized('web', { ports: 2, endpoints: 200 }),
    sized('other', { ports: 3, endpoints: 200, namespace: 'b', loadBalancerIP: '192.0.2.11' }),
  );
  t.deepEqual(sizeOf(state, 'default/web'), [2, 200]);
  t.deepEqual(sizeOf(state, 'b/other'), [3, 200]);
});

test('Members within the share stay the same when one of them goes', (t) => {
  const state = stateOf(greedy);
  const names = () =>
    new Set(
      loadBalancerOf(state.desired, 'default/greedy').listeners[0]?.pool.members.map(({ name }) => name),
    );
  const before = names();
  const [first = ''] = before;
  const [, whole] = greedy;
  const rest = whole.endpoints.filter(({ address }) => !first.startsWith(`${address}:`));
  state.apply({ upserted: [{ ...whole, endpoints: rest }], removed: [] });
  const gone = [...before].filter((name) => !names().has(name));
  t.deepEqual(gone, [first]);
  t.is(names().size, before.size);
});

test('The others get more when a greedy Service goes', (t) => {
  const state = stateOf(greedy, sized('big', { ports: 2, endpoints: 220, annotations: MONITORED }));
  t.deepEqual(sizeOf(state, 'default/big'), [2, 119]);
  state.apply({ upserted: [], removed: [greedy[0]] });
  t.deepEqual(sizeOf(state, 'default/big'), [2, 220]);
  t.deepEqual(loadBalancerOf(state.desired, 'default/big').problems, []);
});

test('Ports of UDP count like those of TCP, but take no descriptors', (t) => {
  const ports = Array.from({ length: 300 }, (_, at) => ({
    name: `p${at}`,
    port: 1_000 + at,
    protocol: 'UDP' as const,
  }));
  const endpoints = Array.from({ length: 20 }, (_, at) => `10.0.0.${at}`);
  const state = new FollowedState(new Cluster(), {}, undefined, { ...BOUNDS, maxChecksPerNamespace: 10 });
  const greedy = [service({ ports }), slice({ endpoints, ports: ports.map((port) => ({ ...port })) })];
  state.apply({ upserted: greedy, removed: [] });
  t.deepEqual(sizeOf(state, 'default/web'), [96, 4]);
  t.regex(loadBalancerOf(state.desired).problems[0]?.message ?? '', /may have 1000 servers \(setting/);
});
