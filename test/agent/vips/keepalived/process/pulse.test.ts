import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { Pulse } from '../../../../../agent/vips/keepalived/process/pulse.ts';

async function pulseOf(t: ExecutionContext, pid: number, advertInterval = 200): Promise<Pulse> {
  const directory = await mkdtemp(join(tmpdir(), 'headgate-pulse-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const vrrpPidFile = join(directory, 'vrrp.pid');
  await writeFile(vrrpPidFile, `${pid}\n`);
  return new Pulse({ vrrpPidFile }, () => advertInterval);
}

async function stopped(t: ExecutionContext): Promise<number> {
  const child = spawn('sleep', ['60']);
  t.teardown(() => child.kill('SIGKILL'));
  await once(child, 'spawn');
  child.kill('SIGSTOP');
  await delay(50);
  return child.pid ?? 0;
}

test('Pulse calls a process still that has not slept or woken for two seconds', async (t) => {
  const pulse = await pulseOf(t, await stopped(t));
  t.false(await pulse.isStill(10_000));
  t.false(await pulse.isStill(12_000));
  t.true(await pulse.isStill(12_001));
  pulse.reset();
  t.false(await pulse.isStill(12_002));
});

test('Pulse waits for five advertisements where that is longer', async (t) => {
  const pulse = await pulseOf(t, await stopped(t), 10_000);
  t.false(await pulse.isStill(0));
  t.false(await pulse.isStill(50_000));
  t.true(await pulse.isStill(50_001));
});

test('Pulse does not call a process still that wakes now and then', async (t) => {
  const pulse = await pulseOf(t, process.pid);
  for (let now = 0; now < 30_000; now += 3_000) {
    t.false(await pulse.isStill(now));
    await delay(20);
  }
});

test('Pulse does not call a process still that is not there', async (t) => {
  const pulse = await pulseOf(t, 2 ** 22 + 1);
  t.false(await pulse.isStill(0));
  t.false(await pulse.isStill(60_000));
});
