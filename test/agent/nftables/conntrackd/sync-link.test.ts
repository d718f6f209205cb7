import test from 'ava';
import { syncLink } from '../../../../agent/nftables/conntrackd/sync-link.ts';

const vrrp = { interface: 'eth0', address: '192.0.2.11', peers: ['192.0.2.12'] };
const on = { connectionSync: true, connectionSyncPort: 3780 };

test('syncLink() is between the addresses of VRRP', (t) => {
  t.deepEqual(syncLink({ ...on, vrrp }), {
    interface: 'eth0',
    address: '192.0.2.11',
    peer: '192.0.2.12',
    port: 3780,
  });
});

test('syncLink() gives none, and refuses nothing, without the setting', (t) => {
  t.is(syncLink({ ...on, connectionSync: false, vrrp: undefined }), undefined);
});

for (const [what, given, has] of [
  ['no VRRP', undefined, 'is not set'],
  ['two peers', { ...vrrp, peers: ['192.0.2.12', '192.0.2.13'] }, 'has 2 peers'],
] as const)
  test(`syncLink() refuses ${what}`, (t) => {
    t.throws(() => syncLink({ ...on, vrrp: given }), {
      code: 'SETTINGS_INVALID',
      message: `Cannot use these settings:\n  connectionSync: It needs "vrrp" with one peer, but "vrrp" ${has}`,
    });
  });
