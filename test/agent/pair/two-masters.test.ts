import test from 'ava';
import type { Roles } from '../../../agent/pair/roles.ts';
import { type MastersSeen, nextMasters, oneMaster } from '../../../agent/pair/two-masters.ts';

const master: Roles = { 'vrrp-51': 'master' };
const backup: Roles = { 'vrrp-51': 'backup' };

function namesOver(
  moments: readonly (readonly [now: number, own: Roles, peer: Roles | undefined, isFresh?: boolean])[],
): readonly string[] {
  let seen: MastersSeen = oneMaster;
  return moments.map(([now, own, peer, isFresh = true]) => {
    seen = nextMasters(seen, own, peer, { now, isFresh });
    return seen.names.join();
  });
}

test('Two masters are reported after more than a second', (t) => {
  const moments = [
    [0, master, master],
    [1_000, master, master],
    [1_001, master, master],
    [1_500, master, backup],
    [1_501, master, master],
  ] as const;
  t.deepEqual(namesOver(moments), ['', '', 'vrrp-51', '', '']);
});

test("A host that was stalled reads the peer's report before it reports two masters", (t) => {
  const moments = [
    [0, master, master],
    [5_000, master, master, false],
    [5_001, master, backup],
    [6_000, master, master],
    [7_001, master, master, false],
    [7_002, master, master],
    [7_003, master, master, false],
  ] as const;
  t.deepEqual(namesOver(moments), ['', '', '', '', '', 'vrrp-51', 'vrrp-51']);
});

test('A peer without a recent report is no second master', (t) => {
  t.deepEqual(
    namesOver([
      [0, master, master],
      [2_000, master, undefined],
      [2_001, master, master],
    ]),
    ['', '', ''],
  );
});

test('Two hosts that are masters of different instances are not two masters', (t) => {
  const own: Roles = { 'vrrp-51': 'master', 'vrrp-52': 'backup' };
  const peer: Roles = { 'vrrp-51': 'backup', 'vrrp-52': 'master' };
  t.deepEqual(
    namesOver([
      [0, own, peer],
      [5_000, own, peer],
    ]),
    ['', ''],
  );
});

test('Two hosts that are masters of different router numbers are two masters', (t) => {
  const peer: Roles = { 'vrrp-61': 'master' };
  t.deepEqual(
    namesOver([
      [0, master, peer],
      [1_001, master, peer],
      [2_000, master, { 'vrrp-61': 'backup' }],
    ]),
    ['', 'vrrp-51', ''],
  );
});
