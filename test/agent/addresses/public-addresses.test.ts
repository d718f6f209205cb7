// The public addresses of a pool, one to one with its block.

import test from 'ava';
import { toLocal, toPublic } from '../../../agent/kubernetes/public-addresses.ts';
import { ask, had, leading, pool, request } from '../../support/values/address-requests.ts';

test('Each address of a pool has its public one, of both families, and back', (t) => {
  const four = pool('a', ['10.0.0.16/28'], { public: { from: '203.0.113.0/28' }, avoidBuggyIPs: true });
  t.is(toPublic(four.public, '10.0.0.21'), '203.0.113.5');
  t.is(toLocal(four.public, '203.0.113.5'), '10.0.0.21');
  t.is(toPublic(four.public, '10.0.0.32'), '10.0.0.32');
  t.is(toLocal(four.public, '203.0.113.16'), undefined);
  t.is(toLocal(four.public, '2001:db8::1'), undefined);
  const six = pool('b', ['fd00::10-fd00::1f'], { public: { from: '2001:db8::-2001:db8::f' } });
  t.is(toPublic(six.public, 'fd00::1a'), '2001:db8::a');
});

for (const [blocks, from] of [
  [['10.0.0.16/28'], '203.0.113.0/29'],
  [['10.0.0.16/28'], '2001:db8::/124'],
  [['10.0.0.1', '10.0.0.2'], '203.0.113.0/31'],
] as const)
  test(`A pool of ${blocks.join(', ')} has no public addresses ${from}`, (t) => {
    t.throws(() => pool('a', blocks, { public: { from } }), {
      message: /public\.from: .* is not a range of the family and size of the only block/,
    });
  });

test('An assignment has the address that clients use beside its own', (t) => {
  const addresses = leading([pool('a', ['10.0.0.5'], { public: { from: '203.0.113.9' } })]);
  ask(addresses, 0, request('default/web'));
  t.deepEqual(had(addresses, 'default/web'), ['10.0.0.5']);
  t.is(addresses.assignment('default/web')?.addresses[0]?.publicAddress, '203.0.113.9');
  t.is(addresses.localOf('203.0.113.9'), '10.0.0.5');
  t.is(addresses.localOf('203.0.113.10'), '203.0.113.10');
});
