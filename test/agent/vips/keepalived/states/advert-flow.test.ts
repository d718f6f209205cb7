import test from 'ava';
import { AdvertFlow } from '../../../../../agent/vips/keepalived/states/advert-flow.ts';
import type { InstanceCounts } from '../../../../../agent/vips/keepalived/states/vrrp-counters.ts';
import type { VrrpStateName } from '../../../../../agent/vips/vrrp.ts';

const FAULT = 'keepalived sends and receives no advertisements of vrrp-51';

const counts = (state: VrrpStateName, sent: number, received: number): readonly InstanceCounts[] => [
  {
    name: 'vrrp-51',
    state,
    adverts: { sent, received },
    counted: { sent, received },
    reached: { master: 0, backup: 0, fault: 0, unknown: 0 },
  },
];

/** The fault after each report of keepalived; `at` in milliseconds. */
const faultsOf = (reports: readonly (readonly [at: number, ...Parameters<typeof counts>])[]): string[] => {
  const flow = new AdvertFlow(() => 200);
  return reports.map(([at, ...report]) => {
    flow.judge(counts(...report), at);
    return flow.fault;
  });
};

test('AdvertFlow reports a backup that has received nothing for two seconds, until it receives', (t) => {
  const faults = faultsOf([
    [0, 'backup', 0, 10],
    [2_000, 'backup', 0, 10],
    [2_001, 'backup', 0, 10],
    [2_100, 'backup', 0, 10],
    [2_200, 'backup', 0, 11],
  ]);
  t.deepEqual(faults, ['', '', FAULT, FAULT, '']);
});

test('AdvertFlow reports a master that has sent nothing, and not one that has received nothing', (t) => {
  t.deepEqual(
    faultsOf([
      [0, 'master', 10, 5],
      [3_000, 'master', 10, 6],
    ]),
    ['', FAULT],
  );
  t.deepEqual(
    faultsOf([
      [0, 'master', 10, 5],
      [3_000, 'master', 11, 5],
    ]),
    ['', ''],
  );
});

test('AdvertFlow expects no advertisements of an instance in state fault or unknown', (t) => {
  for (const state of ['fault', 'unknown'] as const)
    t.deepEqual(
      faultsOf([
        [0, state, 1, 1],
        [60_000, state, 1, 1],
        [61_000, 'backup', 1, 1],
      ]),
      ['', '', ''],
    );
});
