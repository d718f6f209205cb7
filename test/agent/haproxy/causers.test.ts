import test from 'ava';
import { causersOf, isOfOneNamespace } from '../../../agent/haproxy/causers.ts';
import type { LoadBalancer } from '../../../agent/model/load-balancer.ts';
import { gatewayOf } from '../../support/values/routes.ts';

/** A Gateway with these lists of users: `namespace/name` to fingerprint. */
function gateway(lists: Readonly<Record<string, string>>): LoadBalancer {
  const userLists = Object.entries(lists).map(([name, fingerprint]) => ({
    name: `secret ${name}`,
    fingerprint,
  }));
  return gatewayOf({ address: '127.0.0.1', port: 80 }, [], { userLists });
}

for (const [what, before, after, expected] of [
  ['a changed list of one', gateway({ 'a/u': '1', 'b/u': '1' }), gateway({ 'a/u': '2', 'b/u': '1' }), ['a']],
  ['a list that comes and one that goes', gateway({ 'a/u': '1' }), gateway({ 'b/u': '1' }), ['a', 'b']],
  ['the same lists', gateway({ 'a/u': '1' }), gateway({ 'a/u': '1' }), ['default']],
  ['a new owner', undefined, gateway({ 'a/u': '1' }), ['default']],
  ['an owner that goes', gateway({ 'a/u': '1' }), undefined, ['default']],
] as const)
  test(`causersOf() names the namespaces of ${what}`, (t) => {
    t.deepEqual([...causersOf(before, after, 'gateway:default/edge')].sort(), expected);
  });

test('isOfOneNamespace() is false as soon as a second namespace has a load balancer', (t) => {
  const of = (...namespaces: readonly string[]) =>
    isOfOneNamespace(namespaces.map((namespace) => ({ namespace }) as LoadBalancer));
  t.true(of());
  t.true(of('a', 'a'));
  t.false(of('a', 'b', 'a'));
});
