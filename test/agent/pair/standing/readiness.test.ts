import test from 'ava';
import type { PairReport } from '../../../../agent/pair/peers/report.ts';
import { parityOf, whyPeerIsNotReady } from '../../../../agent/pair/standing/readiness.ts';
import { pairReport } from '../../../support/vrrp/pair-report.ts';

const [A, B, C] = ['a', 'b', 'c'].map((digit) => digit.repeat(32)) as [string, string, string];
const own = { model: A, running: A, roles: { 'vrrp-51': 'master' } } as const;
const peer: PairReport = {
  ...pairReport,
  roles: { 'vrrp-51': 'backup' },
  loadBalancers: 1,
  model: A,
  running: A,
};

for (const [title, change, why] of [
  ['A peer that has all could take over', {}, /^$/],
  ['One that has not read the objects could not', { synced: false }, /not read the objects/],
  ['One whose HAProxy does not answer could not', { running: '' }, /HAProxy does not answer/],
  ['One that wants something else could not', { model: B, running: B }, /behind: its desired state differs/],
  ['One whose HAProxy lags could not', { running: B, pending: 2 }, /does not serve 2 load balancers/],
  ['One whose VRRP is in fault could not', { roles: { 'vrrp-51': 'fault' } }, /state fault/],
  ['One with another virtual router could not', { roles: { 'vrrp-61': 'backup' } }, /are vrrp-61, not/],
  ['One without VRRP could not', { roles: {} }, /are none, not/],
  ['One that is lowered could not', { lowered: ['maintenance'] }, /lowered: maintenance/],
  ['One that has handed over before could take over again', { lowered: ['failover'] }, /^$/],
] as const) {
  test(title, (t) => t.regex(whyPeerIsNotReady(own, { ...peer, ...change }), why));
}

test('A peer without a recent report could not take over', (t) => {
  t.regex(whyPeerIsNotReady(own, undefined), /not heard/);
  t.deepEqual(parityOf(own, undefined), { model: 'unknown', running: 'unknown' });
});

test('A peer with the same load balancers in quarantine could take over', (t) => {
  t.is(whyPeerIsNotReady({ ...own, running: C }, { ...peer, running: C, pending: 1 }), '');
});

test('A host that is behind may hand over to a peer that is not', (t) => {
  t.is(whyPeerIsNotReady({ ...own, running: C }, peer), '');
  t.deepEqual(parityOf({ model: A, running: C }, peer), { model: 'same', running: 'differs' });
});
