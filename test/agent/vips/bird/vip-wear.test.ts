import test from 'ava';
import type { StandingReason } from '../../../../agent/vips/announcer.ts';
import { MOST_UNSERVED_MS, VipWear, type WithVips } from '../../../../agent/vips/bird/vip-wear.ts';

const VIP = '198.51.100.1';

const listenerOf = (name: string, address: string, engine: 'haproxy' | 'kernel' = 'haproxy') => ({
  name,
  engine,
  addresses: [address],
});
const loadBalancerOf = (addresses: readonly string[], listeners: WithVips['listeners']): WithVips => ({
  vips: addresses.map((address) => ({ address })),
  listeners,
});

function world() {
  const served = new Set<string>();
  let now = 0;
  const wear = new VipWear({
    serves: (listener, address) => served.has(`${listener} ${address}`),
    now: () => now,
  });
  const routes = (...reasons: readonly StandingReason[]) => Object.fromEntries(wear.routes(reasons));
  return { served, wear, routes, pass: (milliseconds: number) => (now += milliseconds) };
}

test('VipWear announces a VIP once every listener on it is served', (t) => {
  const { served, wear, routes } = world();
  t.true(wear.follow('a', loadBalancerOf([VIP], [listenerOf('l1', VIP), listenerOf('l2', VIP)])));
  served.add(`l1 ${VIP}`);
  t.false(wear.look(['a']));
  t.deepEqual(routes(), {});
  t.is(wear.whyNotFirst(VIP, []), 'a listener on it is not served on this host');
  served.add(`l2 ${VIP}`);
  t.true(wear.look(['a']));
  t.deepEqual(routes(), { [VIP]: 'first' });
  t.is(wear.whyNotFirst(VIP, []), '');
});

test('VipWear wears a route last if a listener stays away, and first again when it is back', (t) => {
  const { served, wear, routes, pass } = world();
  wear.follow('a', loadBalancerOf([VIP], [listenerOf('l1', VIP)]));
  served.add(`l1 ${VIP}`);
  wear.look(['a']);
  served.clear();
  t.false(wear.look(['a']));
  t.deepEqual(routes(), { [VIP]: 'first' });
  pass(MOST_UNSERVED_MS);
  t.true(wear.lookAgain());
  t.deepEqual(routes(), { [VIP]: 'last' });
  served.add(`l1 ${VIP}`);
  t.true(wear.look(['a']));
  t.deepEqual(routes(), { [VIP]: 'first' });
  t.false(wear.isWaiting);
});

test('VipWear announces a VIP that is served nowhere as the last choice, and one without a listener', (t) => {
  const { wear, routes, pass } = world();
  wear.follow('a', loadBalancerOf([VIP], [listenerOf('l1', VIP)]));
  wear.follow('b', loadBalancerOf(['198.51.100.2'], []));
  wear.look(['a', 'b']);
  pass(MOST_UNSERVED_MS);
  wear.lookAgain();
  t.deepEqual(routes(), { [VIP]: 'last', '198.51.100.2': 'first' });
});

test('VipWear keeps a VIP that two load balancers share until both are gone', (t) => {
  const { served, wear, routes } = world();
  wear.follow('a', loadBalancerOf([VIP], [listenerOf('l1', VIP)]));
  t.false(wear.follow('b', loadBalancerOf([VIP], [listenerOf('l2', VIP)])));
  served.add(`l1 ${VIP}`).add(`l2 ${VIP}`);
  wear.look(['a', 'b']);
  t.false(wear.follow('a', undefined));
  t.deepEqual(routes(), { [VIP]: 'first' });
  t.true(wear.follow('b', undefined));
  t.deepEqual(routes(), {});
  t.deepEqual([...wear.addresses()], []);
});

test('VipWear wears all routes of a lowered host last, and withdraws those of HAProxy if that does not answer', (t) => {
  const { served, wear, routes } = world();
  wear.follow('a', loadBalancerOf([VIP], [listenerOf('l1', VIP)]));
  wear.follow('b', loadBalancerOf(['198.51.100.2'], [listenerOf('l2', '198.51.100.2', 'kernel')]));
  served.add(`l1 ${VIP}`).add('l2 198.51.100.2');
  wear.look(['a', 'b']);
  t.deepEqual(routes('maintenance'), { [VIP]: 'last', '198.51.100.2': 'last' });
  t.deepEqual(routes('haproxy', 'maintenance'), { '198.51.100.2': 'last' });
  t.is(wear.whyNotFirst(VIP, ['haproxy']), 'HAProxy does not answer on this host');
  t.is(wear.whyNotFirst(VIP, ['maintenance']), 'this host is lowered: maintenance');
});

test('VipWear keeps the routes of an agent before this one until they are known, and forgets those that no load balancer has', (t) => {
  const { wear, routes } = world();
  wear.adopt([
    [VIP, 'first'],
    ['198.51.100.9', 'last'],
  ]);
  t.false(wear.follow('a', loadBalancerOf([VIP], [listenerOf('l1', VIP)])));
  wear.forgetOthers();
  wear.look(['a']);
  t.deepEqual(routes(), { [VIP]: 'first' });
});
