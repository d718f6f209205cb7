import test from 'ava';
import { machineDetails, readCpu, readMemory } from '../../../../agent/octavia/machine/machine.ts';
import { versionIn } from '../../../../agent/octavia/machine/program-versions.ts';

test('readCpu() has the jiffies of all processors', (t) => {
  const stat = 'cpu  10 2 30 400 5 6 7 0 0 0\ncpu0 1 1 1 1 1 1 1 0 0 0\n';
  t.deepEqual(readCpu(stat), { total: 460, user: '10', system: '30', soft_irq: '7' });
});

test('readMemory() has sizes in KiB by the names of the controller', (t) => {
  const {
    total,
    swap_used: swap,
    slab,
  } = readMemory('MemTotal:  100 kB\nSwapCached: 3 kB\nHugePages: 4\nSlab: 5 kB\n');
  t.deepEqual([total, swap, slab], [100, 3, 5]);
});

test('machineDetails() reads this machine', async (t) => {
  const { memory, disk, load, cpu_count: processors } = await machineDetails();
  t.true(memory.total > memory.free);
  t.true(disk.available > 0 && disk.used > 0);
  t.is(load.length, 3);
  t.true(processors > 0);
});

test('versionIn() finds the version in what a program says of itself', (t) => {
  t.is(versionIn('HAProxy version 2.6.12-1+deb12u4 2026/10/17 - https://haproxy.org/'), '2.6.12-1+deb12u4');
  t.is(versionIn('Keepalived v2.2.7 (01/16,2022)'), '2.2.7');
  t.is(versionIn('no version'), '');
});
