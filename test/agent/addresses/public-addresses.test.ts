// The public addresses of a pool, one to one with its block.

import test from 'ava';
import type { Addresses } from '../../../agent/addresses/addresses.ts';
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

const named = (key: string, ...addresses: readonly string[]) =>
  request(key, { publicAddresses: addresses.map((address) => ({ address, family: 'v4' as const })) });
const publicOf = (addresses: Addresses, key: string) =>
  addresses.assignment(key)?.addresses[0]?.publicAddress;
const problemsOf = (addresses: Addresses, key: string) =>
  addresses.assignment(key)?.problems.map(({ reason, message }) => `${reason}: ${message}`);

test('An owner has the public address that it names, if its pool allows it and no other address has it', (t) => {
  const addresses = leading([
    pool('a', ['10.0.0.5-10.0.0.9'], { public: { allowed: ['203.0.113.0/28'] } }),
    pool('direct', ['203.0.113.3']),
    pool('mapped', ['10.1.0.0/31'], { public: { from: '203.0.113.4/31' } }),
  ]);
  addresses.update({ releaseAfter: 1_000 }, 0);
  ask(addresses, 0, named('shop/web', '203.0.113.9'));
  t.is(publicOf(addresses, 'shop/web'), '203.0.113.9');
  t.is(addresses.claimsOf('shop/web')[0]?.publicAddress, '203.0.113.9');
  const own = had(addresses, 'shop/web')[0] ?? '';
  t.is(addresses.localOf('203.0.113.9'), own);

  for (const [at, [address, why]] of (
    [
      [
        '203.0.113.9',
        'AddressPending: Waiting for the public address 203.0.113.9: Service "shop/web" has it',
      ],
      [
        '203.0.113.16',
        'AddressNotAllowed: Cannot use the public address 203.0.113.16: its pool "a" allows only',
      ],
      [
        '203.0.113.3',
        'AddressNotAllowed: Cannot use the public address 203.0.113.3: it belongs to the pool "direct"',
      ],
      [
        '203.0.113.5',
        'AddressNotAllowed: Cannot use the public address 203.0.113.5: it belongs to the pool "mapped"',
      ],
    ] as const
  ).entries()) {
    ask(addresses, 0, { ...named('other/web', address), labels: { at: String(at) } });
    t.is(publicOf(addresses, 'other/web'), had(addresses, 'other/web')[0], 'as without the annotation');
    t.true(problemsOf(addresses, 'other/web')?.[0]?.startsWith(why), problemsOf(addresses, 'other/web')?.[0]);
  }

  // It is kept with the address for an owner that is gone, and free after that.
  ask(addresses, 0, named('other/web', '203.0.113.9'));
  addresses.update({ requests: [['shop/web', undefined]] }, 10);
  t.regex(problemsOf(addresses, 'other/web')?.[0] ?? '', /is kept for Service "shop\/web"/);
  addresses.update({}, 10_000);
  t.is(publicOf(addresses, 'other/web'), '203.0.113.9');
  t.deepEqual(problemsOf(addresses, 'other/web'), []);
});

test('An owner keeps its public address when the rule gets stricter, and loses it with the annotation', (t) => {
  const pools = (...allowed: readonly string[]) => [pool('a', ['10.0.0.5'], { public: { allowed } })];
  const addresses = leading(pools('203.0.113.0/28'));
  ask(addresses, 0, named('shop/web', '203.0.113.9'));
  addresses.update({ pools: pools('203.0.113.0/29') }, 1);
  t.is(publicOf(addresses, 'shop/web'), '203.0.113.9');
  t.regex(problemsOf(addresses, 'shop/web')?.[0] ?? '', /^AddressOutOfPool: It keeps the public address/);
  ask(addresses, 2, request('shop/web'));
  t.is(publicOf(addresses, 'shop/web'), '10.0.0.5');
  ask(addresses, 3, named('shop/web', '203.0.113.9'));
  t.is(publicOf(addresses, 'shop/web'), '10.0.0.5');
});

test('A pool without the rule has no public addresses to name', (t) => {
  const addresses = leading([pool('a', ['10.0.0.5'])]);
  ask(addresses, 0, named('shop/web', '203.0.113.9'));
  t.is(publicOf(addresses, 'shop/web'), '10.0.0.5');
  t.deepEqual(problemsOf(addresses, 'shop/web'), [
    'AddressNotAllowed: Cannot use the public address 203.0.113.9: its pool "a" has no public addresses to name (public.allowed)',
  ]);
});

test('Nothing is published of a pool whose provisioner answers before it has, and one address is not answered twice', (t) => {
  const addresses = leading([pool('a', ['10.0.0.5-10.0.0.6'], { public: { provisioner: true } })]);
  for (const key of ['shop/web', 'shop/api']) ask(addresses, 0, request(key));
  t.is(publicOf(addresses, 'shop/web'), '');
  t.regex(
    problemsOf(addresses, 'shop/web')?.[0] ?? '',
    /^AddressPending: Waiting for the program of the setting "provisioner" to answer/,
  );
  const [web = '', api = ''] = ['shop/web', 'shop/api'].map((key) => addresses.claimsOf(key)[0]?.name);
  const { changed, claimChanges } = addresses.update({ answers: new Map([[web, '203.0.113.9']]) }, 1);
  t.deepEqual([...changed], ['shop/web']);
  t.is(claimChanges[0]?.claim.publicAddress, '203.0.113.9');
  t.is(publicOf(addresses, 'shop/web'), '203.0.113.9');
  t.deepEqual(problemsOf(addresses, 'shop/web'), []);
  addresses.update({ answers: new Map([[api, '203.0.113.9']]) }, 2);
  t.is(publicOf(addresses, 'shop/api'), '');
});

for (const rule of [{}, { from: '203.0.113.9', provisioner: true }, { allowed: [] }, { provisioner: false }])
  test(`A pool has no public addresses by ${JSON.stringify(rule)}`, (t) => {
    t.throws(() => pool('a', ['10.0.0.5'], { public: rule }), { message: /public/ });
  });
