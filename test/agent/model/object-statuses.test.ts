import test from 'ava';
import type { RouteStatus } from '../../../agent/model/object-status.ts';
import { ObjectStatuses } from '../../../agent/model/object-statuses.ts';

const route = (name: string, gateway: string): RouteStatus => ({
  kind: 'HTTPRoute',
  namespace: 'default',
  name,
  uid: name,
  generation: 1,
  parents: [{ ref: { name: gateway }, conditions: [] }],
});

test('A route of two Gateways has a part of each, until one of them gives none', (t) => {
  const statuses = new ObjectStatuses();
  const [inner, outer] = [route('api', 'inner'), route('api', 'outer')];
  t.true(statuses.update('gateway:default/inner', [inner]));
  t.true(statuses.update('gateway:default/outer', [outer, route('shop', 'outer')]));
  t.deepEqual(statuses.partsOf('HTTPRoute default/api'), [inner, outer]);
  t.true(statuses.update('gateway:default/inner', []));
  t.deepEqual(statuses.partsOf('HTTPRoute default/api'), [outer]);
  t.deepEqual(statuses.of('gateway:default/inner'), []);
});

test('An owner that gives the same values has not changed', (t) => {
  const statuses = new ObjectStatuses();
  const own = [route('api', 'edge'), route('shop', 'edge')];
  t.true(statuses.update('gateway:default/edge', own));
  t.false(statuses.update('gateway:default/edge', [...own]));
  const [first, second] = own;
  const replaced = { ...route('api', 'edge'), generation: 2 };
  t.true(statuses.update('gateway:default/edge', second === undefined ? [] : [replaced, second]));
  t.deepEqual(statuses.partsOf('HTTPRoute default/api'), [replaced]);
  t.not(statuses.partsOf('HTTPRoute default/api')[0], first);
});
