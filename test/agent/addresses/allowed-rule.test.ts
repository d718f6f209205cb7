// Who may have which address and port by the rule `allowed` of a pool, what a stricter rule leaves, and that a mistake
// in a rule closes it.

import test from 'ava';
import type { AddressRequest } from '../../../agent/addresses/addresses.ts';
import { allowedRule } from '../../../agent/kubernetes/allowed-rule.ts';
import { whyNotGranted } from '../../../agent/kubernetes/port-limit.ts';
import {
  ask,
  had,
  leading,
  leave,
  pool,
  reasons,
  request,
  tcp,
} from '../../support/values/address-requests.ts';

const BLOCK = ['192.0.2.0/28', '2001:db8::/64'];
const messages = (addresses: ReturnType<typeof leading>, key: string) =>
  (addresses.assignment(key)?.problems ?? []).map(({ message }) => message);
const faultOf = (value: unknown) => allowedRule.parse(value)?.fault;
const asking = (addresses: ReturnType<typeof leading>, key: string, more: Partial<AddressRequest> = {}) =>
  ask(addresses, 0, request(key, more as object));

for (const [allowed, refused] of [
  [{ namespaces: ['shop'] }, 'is not for namespace "default" (allowed.namespaces)'],
  [
    { namespaceSelector: { matchLabels: { team: 'shop' } } },
    'is not for namespace "default" (allowed.namespaceSelector)',
  ],
  [{ ports: [443, '8000-8999'] }, 'allows only ports 443, 8000-8999 (allowed.ports), not TCP port 80'],
  [{ protocols: ['UDP'] }, 'allows only UDP (allowed.protocols), not TCP port 80'],
] as const)
  test(`A pool with the rule ${JSON.stringify(allowed)} refuses by its name and that of the rule`, (t) => {
    const addresses = leading([pool('a', BLOCK, { allowed })]);
    asking(addresses, 'default/web', { namespaceLabels: { team: 'web' } });
    asking(addresses, 'default/named', {
      namespaceLabels: { team: 'web' },
      given: ['192.0.2.3'] as never,
      pool: 'a',
    });
    t.deepEqual(had(addresses, 'default/web'), []);
    t.deepEqual(messages(addresses, 'default/web'), [
      `It has no IPv4 address yet: no pool is for this Service: pool "a" ${refused}`,
    ]);
    t.deepEqual(messages(addresses, 'default/named'), [`Cannot give 192.0.2.3: its pool "a" ${refused}`]);
    t.deepEqual(reasons(addresses, 'default/named'), ['AddressNotAllowed']);
  });

test('A namespace is allowed by its name or by its labels, and not while its labels are not known', (t) => {
  const allowed = { namespaces: ['named'], namespaceSelector: { matchLabels: { team: 'shop' } } };
  const addresses = leading([pool('a', BLOCK, { allowed })]);
  asking(addresses, 'named/web');
  asking(addresses, 'selected/web', { namespaceLabels: { team: 'shop' } });
  asking(addresses, 'unknown/web');
  t.deepEqual(
    ['named/web', 'selected/web', 'unknown/web'].map((key) => had(addresses, key).length),
    [1, 1, 0],
  );
  asking(addresses, 'unknown/web', { namespaceLabels: { team: 'shop' } });
  t.is(had(addresses, 'unknown/web').length, 1);
});

test('A namespace gets no more addresses than its number, whatever it holds, shares or deletes', (t) => {
  const addresses = leading([pool('a', BLOCK, { allowed: { addressesPerNamespace: 2 } })]);
  for (const name of ['a', 'b', 'c', 'd']) asking(addresses, `shop/${name}`);
  asking(addresses, 'other/a');
  const have = () => ['a', 'b', 'c', 'd'].filter((name) => had(addresses, `shop/${name}`).length > 0);
  t.deepEqual(have(), ['a', 'b']);
  t.is(had(addresses, 'other/a').length, 1);
  t.deepEqual(messages(addresses, 'shop/c'), [
    'It has no IPv4 address yet: pool "a" gives namespace "shop" at most 2 addresses (allowed.addressesPerNamespace)',
  ]);
  leave(addresses, 1, 'shop/a');
  t.deepEqual(have(), ['b', 'c']);
  t.is([...addresses.claims()].filter(({ service }) => service.startsWith('shop/')).length, 2);
});

test('A number of one gives a dual-stack Service of both families nothing, and a shared address counts once', (t) => {
  const addresses = leading([pool('a', BLOCK, { allowed: { addressesPerNamespace: 1 } })]);
  asking(addresses, 'shop/dual', { families: ['v4', 'v6'] });
  t.deepEqual(had(addresses, 'shop/dual'), []);
  asking(addresses, 'shop/dual', { families: ['v4', 'v6'], need: 'some' });
  t.is(had(addresses, 'shop/dual').length, 1);
  leave(addresses, 1, 'shop/dual');
  asking(addresses, 'shop/one', { sharingKey: 'k' });
  asking(addresses, 'shop/two', { sharingKey: 'k', ports: tcp(81) });
  t.deepEqual(had(addresses, 'shop/one'), had(addresses, 'shop/two'));
  t.is(had(addresses, 'shop/two').length, 1);
});

test('A holder keeps its ports when a rule gets stricter, gets no other ones, and loses them when it goes', (t) => {
  const addresses = leading([pool('a', BLOCK)]);
  asking(addresses, 'shop/web', { ports: tcp(22, 80) });
  const [address = ''] = had(addresses, 'shop/web');
  addresses.update({ pools: [pool('a', BLOCK, { allowed: { ports: [80] } })] }, 1);
  t.deepEqual(had(addresses, 'shop/web'), [address]);
  t.deepEqual(messages(addresses, 'shop/web'), [
    `It keeps ${address}, although its pool "a" allows only ports 80 (allowed.ports), not TCP port 22`,
  ]);
  t.deepEqual(reasons(addresses, 'shop/web'), ['AddressOutOfPool']);
  asking(addresses, 'shop/web', { ports: tcp(22, 23, 80) });
  const limit = () => addresses.assignment('shop/web')?.addresses[0]?.limit;
  const refused = () => tcp(22, 23, 80).filter((port) => whyNotGranted(limit(), port) !== undefined);
  t.deepEqual(refused(), tcp(23));
  t.true(
    messages(addresses, 'shop/web').includes(
      `Cannot have ${address} TCP port 23: its pool "a" allows only ports 80 (allowed.ports), not TCP port 23`,
    ),
  );
  leave(addresses, 2, 'shop/web');
  asking(addresses, 'shop/web', { ports: tcp(22, 80) });
  t.deepEqual(had(addresses, 'shop/web'), []);
  asking(addresses, 'shop/web', { ports: tcp(80) });
  t.deepEqual(had(addresses, 'shop/web'), [address]);
  asking(addresses, 'shop/web', { ports: tcp(22, 80) });
  t.deepEqual(refused(), tcp(22, 23));
});

test('A host that follows decides on ports as the leader, by the claim', (t) => {
  const rule = [pool('a', BLOCK, { allowed: { ports: [80] } })];
  const leader = leading([pool('a', BLOCK)]);
  asking(leader, 'shop/web', { ports: tcp(22) });
  leader.update({ pools: rule }, 1);
  asking(leader, 'shop/web', { ports: tcp(22, 23) });
  const follower = leading(rule);
  follower.update({ leading: false, claims: { upserted: [...leader.claims()] } }, 2);
  asking(follower, 'shop/web', { ports: tcp(22, 23) });
  t.deepEqual(follower.assignment('shop/web')?.addresses, leader.assignment('shop/web')?.addresses);
});

test('A holder beyond a smaller number keeps its address, and only the youngest are reported', (t) => {
  const addresses = leading([pool('a', BLOCK)]);
  asking(addresses, 'shop/old');
  ask(addresses, 5, request('shop/young', { created: 2_000 }));
  addresses.update({ pools: [pool('a', BLOCK, { allowed: { addressesPerNamespace: 1 } })] }, 6);
  t.deepEqual(
    ['shop/old', 'shop/young'].map((key) => [had(addresses, key).length, ...reasons(addresses, key)]),
    [[1], [1, 'AddressOutOfPool']],
  );
  leave(addresses, 7, 'shop/old');
  t.deepEqual(reasons(addresses, 'shop/young'), []);
});

for (const [value, fault] of [
  [{}, 'allowed: has no field'],
  [null, 'allowed: is not a mapping'],
  [{ ports: [] }, 'allowed.ports: [] is not a list of at least one port'],
  [{ ports: null }, 'allowed.ports: has no value'],
  [{ namespace: ['a'] }, 'allowed.namespace: Unknown key, the nearest is "namespaces"'],
  [{ ports: ['9-8'] }, 'allowed.ports[0]: "9-8" is not a port from 1 to 65535, or a range as in 8000-8999'],
  [{ ports: [70_000] }, 'allowed.ports[0]: 70000 is not a port from 1 to 65535, or a range as in 8000-8999'],
  [{ protocols: ['tcp'] }, 'allowed.protocols[0]: "tcp" is not one of TCP, UDP, SCTP'],
  [{ namespaceSelector: {} }, 'allowed.namespaceSelector: has no label'],
  [
    { namespaceSelector: { matchLabel: { a: 'b' } } },
    'allowed.namespaceSelector.matchLabel: Unknown key, the nearest is "matchLabels"',
  ],
  [{ addressesPerNamespace: 0 }, 'allowed.addressesPerNamespace: 0 is not a whole number from 1 to 1000000'],
] as const)
  test(`The rule ${JSON.stringify(value)} gives nothing new, and leaves what there is`, (t) => {
    t.is(faultOf(value), fault);
    const good = pool('a', BLOCK);
    const addresses = leading([good]);
    asking(addresses, 'shop/old');
    addresses.update({ pools: [{ ...good, allowed: allowedRule.parse(value) }] }, 1);
    asking(addresses, 'shop/new');
    t.deepEqual([had(addresses, 'shop/old').length, had(addresses, 'shop/new').length], [1, 0]);
    t.deepEqual(reasons(addresses, 'shop/old'), ['AddressOutOfPool']);
    asking(addresses, 'shop/old', { ports: tcp(80, 81) });
    t.true(reasons(addresses, 'shop/old').includes('AddressNotAllowed'));
    t.deepEqual(
      addresses.poolProblems().map(({ reason, message }) => [reason, message]),
      [['InvalidObject', `It gives nothing new: spec.${fault}`]],
    );
    t.throws(() => pool('a', BLOCK, { allowed: value }));
  });
