import test from 'ava';
import type { Endpoint, EndpointSlice, Pod } from '../../../../agent/kubernetes/objects.ts';
import type { Vip } from '../../../../agent/model/load-balancer.ts';
import { type EgressFacts, egressOf } from '../../../../agent/translate/service/egress.ts';

const SERVICE = { key: 'shop/web', namespace: 'shop' };
const VIPS: readonly Vip[] = [
  { address: '192.0.2.1', family: 'v4', source: 'pool' },
  { address: '192.0.2.2', family: 'v4', source: 'pool' },
];

test('egressOf() takes the addresses that the Pods of the namespace have, ready or not, each once', (t) => {
  const pods = { 'shop/web-1': pod(['10.0.0.1', 'fd00::1']), 'shop/web-2': pod(['10.0.0.2']) };
  const slices = [
    slice([
      ['10.0.0.2', 'Pod/web-2'],
      ['10.0.0.1', 'Pod/web-1'],
    ]),
    slice([['10.0.0.1', 'Pod/web-1']]),
  ];
  const { egress, problems, reads } = egressOf(SERVICE, VIPS, slices, facts(pods));
  t.deepEqual(egress, {
    created: 1,
    addresses: { v4: '192.0.2.1' },
    pods: [
      { address: '10.0.0.1', family: 'v4', target: 'Pod/web-1' },
      { address: '10.0.0.2', family: 'v4', target: 'Pod/web-2' },
    ],
  });
  t.deepEqual(problems, []);
  t.deepEqual([...reads].sort(), ['pod shop/web-1', 'pod shop/web-2', 'pods shop']);
});

test('egressOf() refuses what an author of EndpointSlices may write: an address of another pod, of a Node, or of none', (t) => {
  const pods = {
    'shop/web-1': pod(['10.0.0.1']),
    'shop/host-1': { ...pod(['10.9.0.11']), hostNetwork: true },
    'shop/done-1': { ...pod(['10.0.0.7']), hasEnded: true },
    'bank/web-9': pod(['10.0.0.9']),
  };
  for (const [address, target, why] of [
    ['10.0.0.9', 'Pod/web-1', 'Pod "web-1" has another address'],
    ['10.0.0.9', '', 'its targetRef names no Pod'],
    ['10.9.0.11', 'Node/worker-1', 'its targetRef names no Pod'],
    ['10.9.0.11', 'Pod/host-1', 'Pod "host-1" has the address of its Node'],
    ['10.0.0.7', 'Pod/done-1', 'Pod "done-1" has ended'],
  ] as const) {
    const { egress, problems } = egressOf(SERVICE, VIPS, [slice([[address, target]])], facts(pods));
    t.deepEqual(egress?.pods, [], address);
    t.deepEqual(
      problems.map(({ reason, message }) => [reason, message]),
      [['EgressPodRefused', `Connections of some endpoints keep their source: ${address}: ${why}`]],
    );
  }
  // A Pod of another namespace is none of this one.
  const { egress } = egressOf(SERVICE, VIPS, [slice([['10.0.0.9', 'Pod/web-9']])], facts(pods));
  t.deepEqual(egress?.pods, []);
});

test('egressOf() keeps proved addresses, and takes no others, while Pods cannot be read', (t) => {
  const slices = [
    slice([
      ['10.0.0.1', 'Pod/web-1'],
      ['10.0.0.2', 'Pod/web-2'],
    ]),
  ];
  const known = new Set(['10.0.0.1']);
  const pending = egressOf(SERVICE, VIPS, slices, facts({}, { known, access: () => ({ kind: 'pending' }) }));
  t.deepEqual(
    pending.egress?.pods.map(({ address }) => address),
    ['10.0.0.1'],
  );
  t.deepEqual(pending.problems, []);
  const denied = egressOf(
    SERVICE,
    VIPS,
    slices,
    facts({}, { access: () => ({ kind: 'denied', why: 'apply it' }) }),
  );
  t.deepEqual(denied.egress?.pods, []);
  t.deepEqual(
    denied.problems.map(({ reason, message }) => [reason, message]),
    [['NotPermitted', 'Cannot find out which pods the Service has: apply it']],
  );
});

test("egressOf() takes a folder's slices as they are, because their author rules the host", (t) => {
  const { egress } = egressOf(
    SERVICE,
    VIPS,
    [slice([['10.0.0.1', '']])],
    facts({}, { isOfManifest: true, access: () => ({ kind: 'pending' }) }),
  );
  t.is(egress?.pods.length, 1);
});

test('egressOf() leaves from no address that another Service has, and from no cluster IP', (t) => {
  const slices = [slice([['10.0.0.1', 'Pod/web-1']])];
  const pods = { 'shop/web-1': pod(['10.0.0.1']) };
  const taken = egressOf(SERVICE, VIPS, slices, facts(pods, { hasPortAt: () => false }));
  t.deepEqual([taken.egress?.addresses, taken.egress?.pods], [{}, []]);
  t.deepEqual(
    taken.problems.map(({ reason }) => reason),
    ['EgressNotServed'],
  );
  const inside: Vip = { address: '10.96.0.1', family: 'v4', source: 'spec.clusterIPs' };
  t.is(egressOf(SERVICE, [inside, ...VIPS], slices, facts(pods)).egress?.addresses.v4, '192.0.2.1');
});

test('egressOf() takes ten thousand endpoints of a Service at most, and says so', (t) => {
  const endpoints = Array.from(
    { length: 10_001 },
    (_, n) => [`10.${1 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}`, ''] as const,
  );
  const { egress, problems } = egressOf(
    SERVICE,
    VIPS,
    [slice(endpoints.slice(0, 6_000)), slice(endpoints.slice(6_000)), slice([['10.0.0.1', '']])],
    facts({}, { isOfManifest: true }),
  );
  t.is(egress?.pods.length, 10_000);
  t.is(
    problems[0]?.message,
    'Connections of some endpoints keep their source: 10.1.39.16: the Service has more than 10000 endpoints',
  );
});

test('egressOf() is refused on one of several hosts by BGP', (t) => {
  const { egress, problems } = egressOf(SERVICE, VIPS, [], facts({}, { isAmongHosts: true }));
  t.is(egress, undefined);
  t.regex(problems[0]?.message ?? '', /^Cannot use "headgate\.io\/egress" with the setting "hosts": /);
});

function pod(addresses: readonly string[]): Pod {
  return {
    kind: 'Pod',
    key: '',
    namespace: '',
    name: '',
    uid: '',
    addresses,
    hostNetwork: false,
    hasEnded: false,
    labels: {},
    ports: [],
  };
}

function slice(endpoints: readonly (readonly [address: string, target: string])[]): EndpointSlice {
  const none = { nodeName: '', forZones: undefined, forNodes: undefined };
  return {
    kind: 'EndpointSlice',
    key: 'shop/web-abc',
    namespace: 'shop',
    name: 'web-abc',
    uid: '',
    serviceName: 'web',
    headless: false,
    family: 'v4',
    endpoints: endpoints.map(([address, target]): Endpoint => {
      return { address, target, ready: false, serving: false, terminating: false, ...none };
    }),
    ports: [],
    triggerTime: 0,
  };
}

function facts(
  pods: Readonly<Record<string, Pod>>,
  { isOfManifest = false, ...others }: Partial<Omit<EgressFacts, 'pods'>> & { isOfManifest?: boolean } = {},
): EgressFacts {
  return {
    pods: { pod: (key) => pods[key], isOfManifest: () => isOfManifest },
    access: () => ({ kind: 'read' }),
    known: new Set(),
    hasPortAt: () => true,
    created: 1,
    isAmongHosts: false,
    ...others,
  };
}
