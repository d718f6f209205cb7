import test from 'ava';
import type { EndpointSlice } from '../../../../agent/kubernetes/objects.ts';
import { firstEndpoints, selectEndpoints } from '../../../../agent/translate/service/select-endpoints.ts';
import { endpoint, slice } from '../../../support/values/build.ts';

function select(
  slices: readonly EndpointSlice[],
  {
    name = '',
    protocol = 'TCP' as 'TCP' | 'UDP',
    family = 'v4' as 'v4' | 'v6',
    zone = '',
    ignoreHints = false,
  } = {},
) {
  const selection = selectEndpoints(slices, { name, protocol }, family, { zone, ignoreHints });
  const show = (each: (typeof selection.use)[number]) => `${each.endpoint.address}:${each.port}`;
  return { use: selection.use.map(show), drain: selection.drain.map(show), notReady: selection.notReady };
}

const hinted = (address: string, ...forZones: string[]) => endpoint(address, { forZones });

// Conformance: the last pods (KEP-1669)
test('Ready endpoints are used, those that are neither ready nor terminating are only counted', (t) => {
  const endpoints = [
    endpoint('10.0.0.1'),
    endpoint('10.0.0.2', { ready: false }),
    endpoint('10.0.0.3', { ready: false, serving: true }),
  ];
  t.deepEqual(select([slice({ endpoints })]), { use: ['10.0.0.1:8080'], drain: [], notReady: 2 });
});

// Conformance: established connections
test('An endpoint that terminates but serves is drained while others are ready', (t) => {
  const endpoints = [endpoint('10.0.0.1'), endpoint('10.0.0.2', { terminating: true })];
  t.deepEqual(select([slice({ endpoints })]), {
    use: ['10.0.0.1:8080'],
    drain: ['10.0.0.2:8080'],
    notReady: 0,
  });
});

// Conformance: the last pods (KEP-1669)
test('Endpoints that terminate but serve are used if none is ready', (t) => {
  const endpoints = [
    endpoint('10.0.0.1', { terminating: true }),
    endpoint('10.0.0.2', { terminating: true }),
    endpoint('10.0.0.3', { ready: false }),
  ];
  t.deepEqual(select([slice({ endpoints })]), {
    use: ['10.0.0.1:8080', '10.0.0.2:8080'],
    drain: [],
    notReady: 1,
  });
});

// Conformance: the last pods (KEP-1669)
test('An endpoint that terminates and does not serve is not used, even as the last one', (t) => {
  const endpoints = [endpoint('10.0.0.1', { terminating: true, serving: false })];
  t.deepEqual(select([slice({ endpoints })]), { use: [], drain: [], notReady: 1 });
});

// Conformance: spec.publishNotReadyAddresses
test('A terminating endpoint that is ready is used, as for publishNotReadyAddresses', (t) => {
  const endpoints = [endpoint('10.0.0.1', { ready: true, serving: false, terminating: true })];
  t.deepEqual(select([slice({ endpoints })]).use, ['10.0.0.1:8080']);
});

// Conformance: ports[].name
test('Ports are matched by name', (t) => {
  const ports = [
    { name: 'http', port: 8080 },
    { name: 'metrics', port: 9090 },
  ];
  t.deepEqual(select([slice({ ports })], { name: 'metrics' }).use, ['10.0.0.1:9090']);
  t.deepEqual(select([slice({ ports })], { name: '' }).use, []);
});

// Conformance: ports[].name
test('Ports of one name are matched by protocol', (t) => {
  const ports = [
    { name: 'dns', port: 53 },
    { name: 'dns', port: 5353, protocol: 'UDP' as const },
  ];
  t.deepEqual(select([slice({ ports })], { name: 'dns' }).use, ['10.0.0.1:53']);
  t.deepEqual(select([slice({ ports })], { name: 'dns', protocol: 'UDP' }).use, ['10.0.0.1:5353']);
});

// Conformance: ports[].name
test('Each slice has its own target port', (t) => {
  const slices = [
    slice({ name: 'web-a', endpoints: ['10.0.0.1'], ports: [8080] }),
    slice({ name: 'web-b', endpoints: ['10.0.0.2'], ports: [8081] }),
  ];
  t.deepEqual(select(slices).use, ['10.0.0.1:8080', '10.0.0.2:8081']);
});

// Conformance: ports[].name
test('A slice without ports gives no members', (t) => {
  t.deepEqual(select([slice({ ports: [] })]), { use: [], drain: [], notReady: 0 });
});

// Conformance: duplicates
test('An endpoint in two slices counts once, in its best state', (t) => {
  const terminating = endpoint('10.0.0.1', { terminating: true });
  const slices = [
    slice({ name: 'web-a', endpoints: ['10.0.0.9', terminating] }),
    slice({ name: 'web-b', endpoints: [endpoint('10.0.0.1')] }),
    slice({ name: 'web-c', endpoints: [endpoint('10.0.0.1', { ready: false })] }),
  ];
  for (const ordered of [slices, [...slices].reverse()]) {
    const { use, drain, notReady } = select(ordered);
    t.deepEqual([[...use].sort(), drain, notReady], [['10.0.0.1:8080', '10.0.0.9:8080'], [], 0]);
  }
});

test('The first of two slices with the same endpoint in the same state counts', (t) => {
  const slices = ['old', 'new'].map((name) =>
    slice({ name, endpoints: [endpoint('10.0.0.1', { target: `Pod/${name}` })] }),
  );
  const { use } = selectEndpoints(slices, { name: '', protocol: 'TCP' }, 'v4', {
    zone: '',
    ignoreHints: false,
  });
  t.deepEqual(
    use.map(({ endpoint: { target } }) => target),
    ['Pod/old'],
  );
});

test('One pod on two target ports is two members', (t) => {
  const slices = [slice({ name: 'a', ports: [8080] }), slice({ name: 'b', ports: [8081] })];
  t.deepEqual(select(slices).use, ['10.0.0.1:8080', '10.0.0.1:8081']);
});

// Conformance: addressType
test('Only endpoints of the family of the VIP are used', (t) => {
  const slices = [
    slice({ name: 'v4', endpoints: ['10.0.0.1'] }),
    slice({ name: 'v6', endpoints: ['fd00::1'] }),
  ];
  t.deepEqual(select(slices, { family: 'v4' }).use, ['10.0.0.1:8080']);
  t.deepEqual(select(slices, { family: 'v6' }).use, ['fd00::1:8080']);
});

// Conformance: endpoints[].hints.forZones
test("Zone hints narrow to this host's zone if every ready endpoint has hints", (t) => {
  const slices = [slice({ endpoints: [hinted('10.0.0.1', 'a'), hinted('10.0.0.2', 'b', 'a')] })];
  t.deepEqual(select(slices, { zone: 'a' }).use, ['10.0.0.1:8080', '10.0.0.2:8080']);
  t.deepEqual(select(slices, { zone: 'b' }).use, ['10.0.0.2:8080']);
});

// Conformance: endpoints[].hints.forZones
test('Zone hints are ignored if one ready endpoint has none', (t) => {
  const slices = [slice({ endpoints: [hinted('10.0.0.1', 'a'), endpoint('10.0.0.2')] })];
  t.deepEqual(select(slices, { zone: 'a' }).use, ['10.0.0.1:8080', '10.0.0.2:8080']);
});

// Conformance: endpoints[].hints.forZones
test("Zone hints are ignored if none names this host's zone", (t) => {
  const slices = [slice({ endpoints: [hinted('10.0.0.1', 'a'), hinted('10.0.0.2', 'b')] })];
  t.deepEqual(select(slices, { zone: 'c' }).use, ['10.0.0.1:8080', '10.0.0.2:8080']);
});

// Conformance: endpoints[].hints.forZones
test('Zone hints are ignored if this host has no zone', (t) => {
  const slices = [slice({ endpoints: [hinted('10.0.0.1', 'a'), hinted('10.0.0.2', 'b')] })];
  t.is(select(slices).use.length, 2);
});

// Conformance: endpoints[].hints.forZones
test('An endpoint that is not ready may lack hints', (t) => {
  const endpoints = [
    hinted('10.0.0.1', 'a'),
    hinted('10.0.0.2', 'b'),
    endpoint('10.0.0.3', { ready: false }),
    endpoint('10.0.0.4', { terminating: true }),
  ];
  t.deepEqual(select([slice({ endpoints })], { zone: 'a' }), {
    use: ['10.0.0.1:8080'],
    drain: ['10.0.0.4:8080'],
    notReady: 1,
  });
});

// Conformance: endpoints[].hints.forZones
test('Zone hints do not narrow the last pods that terminate', (t) => {
  const endpoints = ['a', 'b'].map((zone, at) =>
    endpoint(`10.0.0.${at}`, { terminating: true, forZones: [zone] }),
  );
  t.is(select([slice({ endpoints })], { zone: 'a' }).use.length, 2);
});

// Conformance: endpoints[].hints.forNodes
test('Hints for nodes are ignored', (t) => {
  const endpoints = [
    endpoint('10.0.0.1', { forNodes: ['node-1'] }),
    endpoint('10.0.0.2', { forNodes: ['node-2'] }),
  ];
  t.is(select([slice({ endpoints })], { zone: 'node-1' }).use.length, 2);
});

test('Hints are ignored with externalTrafficPolicy Local', (t) => {
  const slices = [slice({ endpoints: [hinted('10.0.0.1', 'a'), hinted('10.0.0.2', 'b')] })];
  t.is(select(slices, { zone: 'a', ignoreHints: true }).use.length, 2);
});

test('firstEndpoints() keeps ready endpoints first, and the slices themselves if they have no more', (t) => {
  const slices = [
    slice({ name: 'a', endpoints: [endpoint('10.0.0.1', { ready: false }), endpoint('10.0.0.2')] }),
    slice({ name: 'b', endpoints: [endpoint('10.0.0.3'), endpoint('10.0.0.4')] }),
  ];
  const first = (most: number) =>
    firstEndpoints(slices, most).map(({ endpoints }) => endpoints.map(({ address }) => address));
  t.is(firstEndpoints(slices, 4), slices);
  t.deepEqual(first(3), [['10.0.0.2'], ['10.0.0.3', '10.0.0.4']]);
  t.deepEqual(first(1), [['10.0.0.2'], []]);
});
