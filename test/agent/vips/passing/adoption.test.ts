import test from 'ava';
import type { HostGroup, LbHost } from '../../../../agent/model/host-group.ts';
import { anchorRoutes, hostAnchors } from '../../../../agent/vips/host-anchors.ts';
import { ADOPTION_MS, adoptionOf } from '../../../../agent/vips/passing/adoption.ts';
import { anchorFindings } from '../../../../agent/vips/passing/anchor-findings.ts';
import { DeadHosts } from '../../../../agent/vips/passing/dead-hosts.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';

const hosts = [1, 2, 3, 4].map(
  (at): LbHost => ({
    ...{ name: `lb${at}`, address: `192.0.2.${at}` },
    ...{ back: [`10.9.9.${at}`, `fd09::${at}`], anchors: [`10.77.0.${at}`, `fd77::${at}`] },
  }),
);
const group = (at: number): HostGroup => ({ self: hosts[at - 1] as LbHost, hosts });
const alive = (...all: readonly number[]) => new Set(all.map((at) => `lb${at}`));

test('The heir of a dead host is the next one that lives, the same for every host', (t) => {
  const dead = new Map([['lb3', 5_000]]);
  for (const at of [1, 2]) {
    const { last, heir } = adoptionOf(group(at), alive(1, 2, 4), dead);
    t.deepEqual({ last, heir }, { last: 3, heir: ['10.9.9.4', 'fd09::4'] });
  }
  t.like(adoptionOf(group(4), alive(1, 2, 4), dead), { last: 3, heir: [] });
  const both = new Map([...dead, ['lb4', 9_000] as const]);
  t.like(adoptionOf(group(2), alive(1, 2), both), { last: 3, heir: ['10.9.9.1', 'fd09::1'] });
});

test('Connections are those of the host that died last, and of none after three hours or without anchors', (t) => {
  const dead = new Map([
    ['lb1', 1_000],
    ['lb3', 2_000],
  ]);
  t.is(adoptionOf(group(2), alive(2, 4), dead).last, 1);
  t.is(adoptionOf(group(2), alive(2, 4), new Map([...dead, ['lb1', ADOPTION_MS]])).last, 3);
  t.is(adoptionOf(group(2), alive(1, 2, 3, 4), dead).last, 0);
  const plain = hosts.map((host) => ({ ...host, anchors: [] }));
  const without = { self: plain[1] as LbHost, hosts: plain };
  t.deepEqual(adoptionOf(without, alive(2, 4), dead), { groups: [], own: [], last: 0, heir: [] });
});

test('Each host announces its own anchors first, and those of others the worse the further they are', (t) => {
  const ranks = (isReady: boolean) =>
    Object.fromEntries(anchorRoutes(group(2), isReady).map(({ address, rank }) => [address, rank]));
  t.like(ranks(true), { '10.77.0.1': 1, '10.77.0.2': 0, '10.77.0.3': 3, '10.77.0.4': 2, 'fd77::2': 0 });
  t.like(ranks(false), { '10.77.0.1': 1, '10.77.0.2': 4 });
  t.deepEqual(anchorRoutes(undefined, true), []);
  const { groups, groupOf } = hostAnchors(group(2));
  t.deepEqual([groups.length, groupOf('198.51.100.1'), groupOf('2001:db8::1')], [4, 2, 2]);
});

test('DeadHosts counts from when a host was seen as dead, also after a restart, whatever the clock of the day does', async (t) => {
  const clock = new FakeClock();
  const dead = new DeadHosts(clock);
  t.true(dead.follow(group(1), alive(1, 2, 4)));
  t.false(dead.follow(group(1), alive(1, 2, 4)));
  await clock.advance(7_000);
  t.true(dead.follow(group(1), alive(1, 4)));
  t.deepEqual(Object.fromEntries(dead.ages()), { lb3: 7_000, lb2: 0 });
  const again = new DeadHosts(clock);
  again.restore(`${dead.text()}lb4 99999999999999\nnonsense\n`);
  t.like(Object.fromEntries(again.ages()), { lb3: 7_000, lb2: 0, lb4: 0 });
  t.true(again.follow(group(1), alive(1, 2, 3, 4)));
  t.is(again.ages().size, 0);
});

test('anchorFindings() names what members need to reach the anchors, and a parameter of conntrack that takes packets of other hosts', (t) => {
  const peers = [{ families: ['v4'] as const }];
  const networks = new Map([['eth0', ['10.77.0.0/24', 'fd09::/64']]]);
  const faults = anchorFindings(group(1), peers, { networks, isLiberal: true });
  t.true(faults.every(({ ok }) => !ok));
  const text = faults.map(({ what, detail }) => `${what}: ${detail}`).join('\n');
  t.regex(text, /no peer of the setting bgp takes routes of IPv6/);
  t.regex(text, /10\.77\.0\.1 is in the network of eth0/);
  t.regex(text, /nf_conntrack_tcp_be_liberal: is not 0/);
  const facts = { networks: new Map(), isLiberal: false };
  t.true(anchorFindings(group(1), [{ families: ['v4', 'v6'] }], facts).every(({ ok }) => ok));
});
