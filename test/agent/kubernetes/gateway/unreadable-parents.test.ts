import test from 'ava';
import { unreadableParents } from '../../../../agent/kubernetes/gateway/unreadable-parents.ts';

const group = 'gateway.networking.k8s.io';
const spec = (json: unknown) => ({ spec: json });

test('unreadableParents() gives the parents of a route that can be read, and leaves out the others', (t) => {
  const parentRefs = [
    { name: 'edge', sectionName: 'http', port: 80 },
    { name: 'Not a name' },
    7,
    { namespace: 'shop', kind: 'ListenerSet', name: 'own' },
  ];
  t.deepEqual(unreadableParents('GRPCRoute', spec({ parentRefs, rules: 7 })), [
    { group, kind: 'Gateway', name: 'edge', sectionName: 'http', port: 80 },
    { group, kind: 'ListenerSet', namespace: 'shop', name: 'own' },
  ]);
  const many = Array.from({ length: 100 }, (_, at) => ({ name: `edge-${at}` }));
  t.is(unreadableParents('TCPRoute', spec({ parentRefs: many })).length, 32);
});

test('unreadableParents() gives the class of a Gateway and the Gateway of a ListenerSet', (t) => {
  t.deepEqual(unreadableParents('Gateway', spec({ gatewayClassName: 'edge', listeners: 7 })), [
    { group, kind: 'GatewayClass', name: 'edge' },
  ]);
  t.deepEqual(unreadableParents('ListenerSet', spec({ parentRef: { name: 'edge' } })), [
    { group, kind: 'Gateway', name: 'edge' },
  ]);
});

for (const [title, json] of [
  ['no specification', {}],
  ['another type', spec([])],
  ['parents of another type', spec({ parentRefs: 'edge', gatewayClassName: 7, parentRef: null })],
] as const)
  test(`unreadableParents() gives none of an object with ${title}`, (t) => {
    for (const kind of ['Gateway', 'ListenerSet', 'HTTPRoute', 'Ingress', 'BackendTLSPolicy'] as const)
      t.deepEqual(unreadableParents(kind, json), []);
  });
