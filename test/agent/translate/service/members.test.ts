import { deepStrictEqual } from 'node:assert/strict';
import test from 'ava';
import fc from 'fast-check';
import type { Node } from '../../../../agent/kubernetes/objects.ts';
import {
  DEFAULT_WEIGHT,
  isExcluded,
  membersFromEndpoints,
  membersFromNodes,
  stableId,
} from '../../../../agent/translate/service/members.ts';
import { endpoint, node, service } from '../../../support/values/build.ts';

const LABEL = 'node.kubernetes.io/exclude-from-external-load-balancers';
const PORT = { name: '', protocol: 'TCP', port: 80, nodePort: 30_080, appProtocol: '' } as const;

function nodeMembers(
  nodes: readonly Node[],
  {
    policy = 'Cluster' as 'Cluster' | 'Local',
    use = [] as string[],
    drain = [] as string[],
    family = 'v4' as 'v4' | 'v6',
  } = {},
): readonly string[] {
  const asked = service({ externalTrafficPolicy: policy });
  const on = (names: readonly string[]) =>
    names.map((nodeName) => ({ endpoint: endpoint('10.0.0.1', { nodeName }), port: 8080 }));
  return membersFromNodes(nodes, asked, PORT.nodePort, family, { use: on(use), drain: on(drain) }).map(
    ({ name, state }) => `${name} ${state}`,
  );
}

test('A member of endpoints has its address, port, weight and pod', (t) => {
  const selection = {
    use: [{ endpoint: endpoint('10.0.0.1', { target: 'Pod/web-1' }), port: 8080 }],
    drain: [{ endpoint: endpoint('fd00::1', { terminating: true }), port: 8080 }],
    notReady: 0,
  };
  t.deepEqual(membersFromEndpoints(selection), [
    {
      name: '10.0.0.1:8080',
      id: stableId('10.0.0.1:8080'),
      address: '10.0.0.1',
      port: 8080,
      weight: DEFAULT_WEIGHT,
      state: 'ready',
      target: 'Pod/web-1',
    },
    {
      name: 'fd00::1:8080',
      id: stableId('fd00::1:8080'),
      address: 'fd00::1',
      port: 8080,
      weight: DEFAULT_WEIGHT,
      state: 'drain',
      target: '',
    },
  ]);
});

test('Members are sorted by name, and ids do not depend on the order of objects', (t) => {
  const lists = fc
    .uniqueArray(fc.ipV4(), { maxLength: 30 })
    .chain((list) => fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length })));
  const members = (addresses: readonly string[]) =>
    membersFromEndpoints({
      use: addresses.map((address) => ({ endpoint: endpoint(address), port: 80 })),
      drain: [],
      notReady: 0,
    });
  const property = fc.property(lists, ([list, shuffled]) =>
    deepStrictEqual(members(shuffled), members(list)),
  );
  t.notThrows(() => fc.assert(property));
});

test('An id is a hash of the name that stays the same in all versions', (t) => {
  t.is(stableId('10.0.0.1:8080'), 302_946_325);
  t.is(stableId('2001:db8::1:443'), 498_494_680);
});

test('Ids are within the range of HAProxy', (t) => {
  const property = fc.property(fc.string(), (text) => {
    const id = stableId(text);
    return Number.isInteger(id) && id >= 1 && id <= 2 ** 31 - 1;
  });
  t.notThrows(() => fc.assert(property));
});

test('Two members of a pool with equal hashes get different ids', (t) => {
  // Two names with the same id, found by trial.
  const [first, second] = ['10.0.210.217:30000', '10.0.214.73:30000'];
  t.is(stableId(first), stableId(second));
  const members = membersFromEndpoints({
    use: ['10.0.214.73', '10.0.210.217'].map((address) => ({ endpoint: endpoint(address), port: 30_000 })),
    drain: [],
    notReady: 0,
  });
  t.deepEqual(
    members.map(({ name, id }) => [name, id - stableId(first)]),
    [
      [first, 0],
      [second, 1],
    ],
  );
});

// Conformance: status.addresses
test('A node is a member at its InternalIP of the family and the nodePort', (t) => {
  const nodes = [node({ internalIPs: ['198.51.100.1', 'fd00::1', '198.51.100.2'] })];
  t.deepEqual(nodeMembers(nodes), ['198.51.100.1:30080 ready']);
  t.deepEqual(nodeMembers(nodes, { family: 'v6' }), ['fd00::1:30080 ready']);
});

// Conformance: status.addresses
test('A node without an address of the family is not a member in that family', (t) => {
  t.deepEqual(nodeMembers([node({ internalIPs: ['198.51.100.1'] })], { family: 'v6' }), []);
});

// Conformance: condition Ready, taints
test('With externalTrafficPolicy Cluster every node is a member', (t) => {
  const nodes = [node({ name: 'a' }), node({ name: 'b', internalIPs: ['198.51.100.2'] })];
  t.is(nodeMembers(nodes, { use: ['a'], drain: ['b'] }).length, 2);
});

test('With externalTrafficPolicy Local only nodes with endpoints in use are members', (t) => {
  const nodes = [node({ name: 'a' }), node({ name: 'b', internalIPs: ['198.51.100.2'] })];
  t.deepEqual(nodeMembers(nodes, { policy: 'Local', use: ['b'] }), ['198.51.100.2:30080 ready']);
});

test('With externalTrafficPolicy Local a node whose last endpoints terminate is drained', (t) => {
  const nodes = [node({ name: 'a' }), node({ name: 'b', internalIPs: ['198.51.100.2'] })];
  t.deepEqual(nodeMembers(nodes, { policy: 'Local', use: ['b'], drain: ['a', 'b'] }), [
    '198.51.100.1:30080 drain',
    '198.51.100.2:30080 ready',
  ]);
});

// Conformance: condition Ready, taints
test('A node with a NoExecute taint is not a member', (t) => {
  t.deepEqual(nodeMembers([node({ noExecute: true })]), []);
});

// Conformance: metadata.deletionTimestamp of a Node
test('A node that is being deleted is drained', (t) => {
  t.deepEqual(nodeMembers([node({ deleting: true })]), ['198.51.100.1:30080 drain']);
});

test('A node with the exclude label is not a member', (t) => {
  t.deepEqual(nodeMembers([node({ labels: { [LABEL]: 'true' } })]), []);
});

test('Two nodes with one address are one member', (t) => {
  t.deepEqual(nodeMembers([node({ name: 'a' }), node({ name: 'b' })]), ['198.51.100.1:30080 ready']);
});

for (const value of ['false', 'False', 'FALSE', 'f', 'F', '0']) {
  // Conformance: label node.kubernetes.io/exclude-from-external-load-balancers
  test(`The exclude label with value "${value}" includes the node`, (t) => {
    t.false(isExcluded(node({ labels: { [LABEL]: value } })));
  });
}

for (const value of ['true', 'True', 'TRUE', 't', 'T', '1', '', 'nonsense', 'fALSE', 'no']) {
  // Conformance: label node.kubernetes.io/exclude-from-external-load-balancers
  test(`The exclude label with value "${value}" excludes the node`, (t) => {
    t.true(isExcluded(node({ labels: { [LABEL]: value } })));
  });
}

// Conformance: label node.kubernetes.io/exclude-from-external-load-balancers
test('A node without the exclude label is included', (t) => {
  t.false(isExcluded(node({ labels: { 'kubernetes.io/hostname': 'node-1' } })));
});

test('With externalTrafficPolicy Local the weights of nodes are in proportion to their endpoints, from 1 to 256', (t) => {
  const weights = (counts: Readonly<Record<string, number>>, policy: 'Local' | 'Cluster' = 'Local') => {
    const nodes = Object.keys(counts).map((name, at) => node({ name, internalIPs: [`10.1.0.${at + 1}`] }));
    const use = Object.entries(counts).flatMap(([nodeName, count]) =>
      Array.from({ length: count }, () => ({ endpoint: endpoint('10.0.0.1', { nodeName }), port: 8080 })),
    );
    const asked = service({ externalTrafficPolicy: policy });
    return membersFromNodes(nodes, asked, PORT.nodePort, 'v4', { use, drain: [] }).map(
      ({ weight }) => weight,
    );
  };
  t.deepEqual(weights({ a: 1, b: 3 }), [16, 48]);
  t.deepEqual(weights({ a: 1, b: 16 }), [16, 256]);
  t.deepEqual(weights({ a: 1, b: 32, c: 64 }), [4, 128, 256]);
  t.deepEqual(weights({ a: 1, b: 1000 }), [1, 256]);
  t.deepEqual(weights({ a: 1, b: 3 }, 'Cluster'), [16, 16]);
});
