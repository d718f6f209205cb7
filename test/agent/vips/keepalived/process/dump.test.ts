import test from 'ava';
import { parseNotification } from '../../../../../agent/vips/keepalived/notices.ts';
import { parseDump } from '../../../../../agent/vips/keepalived/process/dump.ts';

/** As keepalived 2.2.7 writes it, with the fields that are read. */
const INSTANCE = {
  data: {
    iname: 'vrrp-51',
    last_transition: 1795212809.644588,
    base_priority: 200,
    effective_priority: 98,
    adver_int: 0.2,
    state: 2,
    vips: ['10.9.0.1 dev eth0 scope global set'],
    evips: ['10.9.1.1 dev eth0 scope global set', 'fd09::1:1 dev eth0 scope global deprecated'],
  },
  stats: { advert_rcvd: 3, advert_sent: 7, become_master: 1 },
};

test('parseDump() reads the JSON of keepalived', (t) => {
  t.deepEqual(parseDump(JSON.stringify([INSTANCE])), [
    {
      name: 'vrrp-51',
      state: 'master',
      lastTransition: 1795212809.644588,
      basePriority: 200,
      priority: 98,
      advertInterval: 200,
      addresses: new Set(['10.9.0.1', '10.9.1.1', 'fd09::1:1']),
      set: new Set(['10.9.0.1', '10.9.1.1']),
      advertsReceived: 3,
      advertsSent: 7,
      becameMaster: 1,
      forgeries: undefined,
    },
  ]);
});

test('parseDump() reads the mapping that newer versions can write', (t) => {
  t.is(parseDump(JSON.stringify({ vrrp: [INSTANCE], global_data: {} }))?.[0]?.name, 'vrrp-51');
});

test('parseDump() gives undefined for an incomplete file and for another file', (t) => {
  const whole = JSON.stringify([INSTANCE]);
  for (let length = 0; length < whole.length; length++) t.is(parseDump(whole.slice(0, length)), undefined);
  for (const text of ['null', '{}', '[1]', '[{"data":{}}]']) t.is(parseDump(text), undefined);
});

test('parseNotification() reads the lines of the FIFO', (t) => {
  t.deepEqual(parseNotification('INSTANCE "vrrp-51" MASTER 200'), {
    kind: 'state',
    instance: 'vrrp-51',
    state: 'master',
    priority: 200,
  });
  t.like(parseNotification('INSTANCE "vrrp-51" STOP 200'), { state: 'unknown' });
  t.deepEqual(parseNotification('INSTANCE "vrrp-51" MASTER_RX_LOWER_PRI 200'), {
    kind: 'rival',
    instance: 'vrrp-51',
  });
});

test('parseNotification() ignores a line without a state of an instance', (t) => {
  for (const line of [
    '',
    'GROUP "g" MASTER 0',
    'INSTANCE "vrrp-51" MASTER_PRIORITY 98',
    'INSTANCE vrrp-51 MASTER',
  ])
    t.is(parseNotification(line), undefined, line);
});
