import test from 'ava';
import { type CurrentObject, readCurrentObject } from '../../../../agent/kubernetes/current-object.ts';
import { objectStatusPatch } from '../../../../agent/kubernetes/writers/object-status-patch.ts';
import type {
  GatewayStatus,
  ParentReference,
  RouteStatus,
  StatusCondition,
} from '../../../../agent/model/object-status.ts';

const [BEFORE, NOW] = ['2026-01-01T00:00:00Z', '2026-02-01T00:00:00Z'];
const OURS = 'headgate.io/gateway-controller';
const GATEWAY = { group: 'gateway.networking.k8s.io', kind: 'Gateway' };

const subject = { namespace: 'default', name: 'api', uid: 'u-1', generation: 2 };
const current = (status: object): CurrentObject => ({
  ...subject,
  resourceVersion: '7',
  status: JSON.stringify(status),
});
const accepted = (status: StatusCondition['status'] = 'True'): StatusCondition => ({
  type: 'Accepted',
  status,
  reason: 'Accepted',
  message: 'It is',
});
const route = (...refs: readonly ParentReference[]): RouteStatus => ({
  kind: 'HTTPRoute',
  ...subject,
  parents: refs.map((ref) => ({ ref, conditions: [accepted()] })),
});
/** As in the API. */
const written = (condition: StatusCondition, lastTransitionTime: string, observedGeneration = 2) => ({
  ...condition,
  lastTransitionTime,
  observedGeneration,
});
const entry = (name: string, controllerName: string, conditions: readonly object[]) => ({
  parentRef: { ...GATEWAY, name },
  controllerName,
  conditions,
});
const patched = (status: object, desired: RouteStatus | GatewayStatus) =>
  objectStatusPatch(current(status), desired, NOW);

test('A route without a status gets an entry, guarded by UID and version', (t) => {
  t.deepEqual(patched({}, route({ ...GATEWAY, name: 'edge' })), {
    metadata: { uid: 'u-1', resourceVersion: '7' },
    status: { parents: [entry('edge', OURS, [written(accepted(), NOW)])] },
  });
});

test('A status that is as desired needs no patch, whatever its time', (t) => {
  const parents = [entry('edge', OURS, [written(accepted(), BEFORE)])];
  t.is(patched({ parents }, route({ ...GATEWAY, name: 'edge' })), undefined);
});

test('Entries of other controllers stay in their places, and an own one that is not desired goes', (t) => {
  const [first, last] = [entry('a', 'example.org/x', []), entry('b', 'example.org/x', [])];
  const own = entry('edge', OURS, [written(accepted(), BEFORE, 1)]);
  const parents = [first, entry('gone', OURS, []), own, last];
  t.deepEqual(patched({ parents }, route({ ...GATEWAY, name: 'edge' }))?.status, {
    parents: [first, entry('edge', OURS, [written(accepted(), BEFORE)]), last],
  });
  t.deepEqual(patched({ parents }, route())?.status, { parents: [first, last] });
});

test('A reference equals one that leaves out the defaults of the API', (t) => {
  const parents = [entry('edge', OURS, [written(accepted(), BEFORE)])];
  const ref = { name: 'edge', namespace: 'default' };
  t.deepEqual(patched({ parents }, route(ref))?.status, {
    parents: [{ ...entry('edge', OURS, [written(accepted(), BEFORE)]), parentRef: ref }],
  });
});

test('The time of a condition changes only with its status', (t) => {
  const before = written({ ...accepted(), message: 'Another' }, BEFORE, 1);
  const refused: RouteStatus = {
    ...route(),
    parents: [{ ref: { ...GATEWAY, name: 'edge' }, conditions: [accepted('False')] }],
  };
  const parents = [entry('edge', OURS, [before])];
  const times = (desired: RouteStatus) => JSON.stringify(patched({ parents }, desired)?.status);
  t.true(times(route({ ...GATEWAY, name: 'edge' })).includes(BEFORE));
  t.true(times(refused).includes(NOW));
});

const gateway = (more: Partial<GatewayStatus> = {}): GatewayStatus => ({
  kind: 'Gateway',
  ...subject,
  conditions: [accepted()],
  programmedBy: [],
  addresses: [],
  listeners: [],
  attachedListenerSets: 0,
  ...more,
});

test("A Gateway's default conditions are replaced, and those of other controllers stay", (t) => {
  const pending = { type: 'Programmed', status: 'Unknown', reason: 'Pending', lastTransitionTime: BEFORE };
  const foreign = { type: 'example.org/Checked', status: 'True', reason: 'Yes', lastTransitionTime: BEFORE };
  const unknown = { ...pending, type: 'Accepted' };
  t.deepEqual(patched({ conditions: [unknown, foreign, pending] }, gateway())?.status, {
    conditions: [written(accepted(), NOW), foreign],
  });
});

test('The listeners of a Gateway follow its specification, each with the times of its conditions', (t) => {
  const listener = (name: string, attachedRoutes: number) => ({
    name,
    attachedRoutes,
    supportedKinds: [{ group: GATEWAY.group, kind: 'HTTPRoute' }],
  });
  const old = { ...listener('a', 3), conditions: [written(accepted(), BEFORE, 1)] };
  const status = { conditions: [written(accepted(), BEFORE)], listeners: [{ ...old, name: 'gone' }, old] };
  const desired = ['b', 'a'].map((name) => ({
    ...listener(name, 3),
    conditions: [accepted()],
    programmedBy: [],
  }));
  t.deepEqual(patched(status, gateway({ listeners: desired }))?.status, {
    listeners: [
      { ...listener('b', 3), conditions: [written(accepted(), NOW)] },
      { ...listener('a', 3), conditions: [written(accepted(), BEFORE)] },
    ],
  });
});

test('An Ingress gets its addresses with their ports', (t) => {
  const desired = {
    kind: 'Ingress',
    ...subject,
    addresses: ['192.0.2.1'],
    ports: [80, 443],
    programmedBy: [],
  } as const;
  const ports = [80, 443].map((port) => ({ port, protocol: 'TCP' }));
  const patch = (status: object) => objectStatusPatch(current(status), desired, NOW)?.status;
  t.deepEqual(patch({ loadBalancer: {} }), { loadBalancer: { ingress: [{ ip: '192.0.2.1', ports }] } });
  t.is(patch({ loadBalancer: { ingress: [{ ip: '192.0.2.1', ports }] } }), undefined);
  t.is(objectStatusPatch(current({ loadBalancer: {} }), { ...desired, addresses: [] }, NOW), undefined);
});

test('The addresses of an object that is not ours any more go if no other controller has written them', (t) => {
  const withdrawn = {
    ...subject,
    generation: Number.MAX_SAFE_INTEGER,
    addresses: [],
    isWithdrawn: true,
  } as const;
  const ingress = { kind: 'Ingress', ...withdrawn, ports: [], programmedBy: [] } as const;
  const gateway = {
    kind: 'Gateway',
    ...withdrawn,
    conditions: [accepted('Unknown')],
    listeners: [],
    programmedBy: [],
    attachedListenerSets: 0,
  } as const;
  const status = { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } };
  const own = { ...current(status), hasOwnAddresses: true } as const;
  t.deepEqual(objectStatusPatch(own, ingress, NOW)?.status, { loadBalancer: { ingress: null } });
  t.is(objectStatusPatch(current(status), ingress, NOW), undefined);
  t.is(objectStatusPatch({ ...own, status: '{"loadBalancer":{}}' }, ingress, NOW), undefined);
  const ofGateway = { addresses: [{ type: 'IPAddress', value: '192.0.2.1' }], conditions: [], listeners: [] };
  t.deepEqual(objectStatusPatch({ ...own, status: JSON.stringify(ofGateway) }, gateway, NOW)?.status, {
    addresses: [],
    conditions: [written(accepted('Unknown'), NOW)],
  });
  t.is(objectStatusPatch(current(ofGateway), gateway, NOW), undefined);
});

test('readCurrentObject() says whether the addresses of the status are from this agent', (t) => {
  const read = (manager: string, fields: object, subresource = 'status') =>
    readCurrentObject({
      metadata: {
        ...subject,
        resourceVersion: '7',
        managedFields: [{ manager, subresource, fieldsV1: { 'f:status': fields } }, 'wrong'],
      },
    })?.hasOwnAddresses;
  const ofIngress = { 'f:loadBalancer': { 'f:ingress': {} } };
  t.true(read('headgate', ofIngress));
  t.true(read('headgate', { 'f:addresses': {} }));
  t.is(read('other', ofIngress), undefined);
  t.is(read('headgate', ofIngress, ''), undefined);
  t.is(read('headgate', { 'f:conditions': {} }), undefined);
});
