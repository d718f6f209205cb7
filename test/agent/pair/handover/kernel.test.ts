import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { HandoverKernel, lentIn, parseLink } from '../../../../agent/pair/handover/kernel.ts';

const SHOWN = JSON.stringify([
  {
    ifname: 'eth0',
    address: '02:00:00:00:00:0B',
    addr_info: [
      { family: 'inet', local: '192.0.2.1', prefixlen: 32, scope: 'global' },
      { family: 'inet', local: '192.0.2.11', prefixlen: 24, scope: 'global' },
      { family: 'inet6', local: '2001:db8::11', prefixlen: 64, scope: 'global' },
      { family: 'inet6', local: 'fe80::b', prefixlen: 64, scope: 'link' },
    ],
  },
]);

test('parseLink() gives the address of VRRP, and one of the other family that stays on this host', (t) => {
  const ether = '02:00:00:00:00:0b';
  t.deepEqual(parseLink(SHOWN, '192.0.2.11'), { ether, v4: '192.0.2.11', v6: 'fe80::b' });
  t.deepEqual(parseLink(SHOWN, '2001:db8::11'), { ether, v4: '192.0.2.11', v6: '2001:db8::11' });
});

test('parseLink() leaves out addresses that the interface does not have', (t) => {
  t.deepEqual(parseLink('[{}]', '192.0.2.11'), { ether: '', v4: '192.0.2.11', v6: '' });
});

test('lentIn() finds addresses that time out, and no permanent one', (t) => {
  const loopback = [
    { local: '127.0.0.1', prefixlen: 8, scope: 'host' },
    { local: '192.0.2.2', prefixlen: 32, scope: 'host' },
    { local: '192.0.2.1', prefixlen: 32, scope: 'host', dynamic: true },
    { local: '2001:db8:0::1', prefixlen: 128, scope: 'global', dynamic: true },
  ];
  t.deepEqual(
    [...lentIn(JSON.stringify([{ ifname: 'lo', addr_info: loopback }]))],
    ['192.0.2.1', '2001:db8::1'],
  );
});

test('HandoverKernel checks its host while a handover is under way: neither takes the file of the other', async (t) => {
  const scratch = await mkdtemp(join(tmpdir(), 'hg-handover-'));
  t.teardown(() => rm(scratch, { recursive: true, force: true }));
  const nft = join(scratch, 'nft');
  await writeFile(nft, '#!/bin/sh\nexit 0\n', { mode: 0o755 });
  const place = () => ({ interface: 'eth0', address: '192.0.2.11' });
  const kernel = new HandoverKernel({ netns: '', nft, place, table: 'headgate_handover_51', scratch });
  const ends = [kernel.whyNotDivert(), kernel.endDiversion().then(() => ''), kernel.whyNotDivert()];
  t.deepEqual(await Promise.all(ends), ['', '', '']);
  t.deepEqual(await readdir(scratch), ['nft']);
});
