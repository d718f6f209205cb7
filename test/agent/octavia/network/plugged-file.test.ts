import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { readPlugged, writePlugged } from '../../../../agent/octavia/network/plugged-file.ts';
import { fixed, plugged } from '../../../support/octavia/plugs.ts';

test('readPlugged() gives what writePlugged() has written, and nothing without a file', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-plugged-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const path = join(folder, 'deeper', 'interfaces.json');
  t.deepEqual(await readPlugged(path), []);
  const rules = [{ protocol: 'TCP', cidr: '10.0.0.0/8', port: 80 }] as const;
  const members = [fixed({ address: '10.20.0.5', subnet: '10.20.0.0/24' })];
  const all = [
    { ...plugged(), isSriov: true, rules },
    { ...plugged(), name: 'eth2', mac: '02:00:00:00:01:02', vip: undefined, fixed: members },
  ];
  await writePlugged(path, all);
  t.deepEqual(await readPlugged(path), all);
});

const WRONG: readonly (readonly [from: string, to: string])[] = [
  ['"eth1"', '"eth1 up; reboot"'],
  ['"eth1"', '"../eth1"'],
  ['10.9.0.100', '10.9.0.100 dev lo'],
  ['02:00:00:00:01:01', '02:00'],
  ['"interfaces"', '"others"'],
  [']', ''],
];

test('readPlugged() refuses a file that another program has changed', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-plugged-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const path = join(folder, 'interfaces.json');
  await writePlugged(path, [plugged()]);
  const text = await readFile(path, 'utf8');
  for (const [from, to] of WRONG) {
    t.true(text.includes(from), from);
    await writeFile(path, text.replaceAll(from, to));
    await t.throwsAsync(readPlugged(path), { code: 'FILE_READ' }, `${from} ${to}`);
  }
});
