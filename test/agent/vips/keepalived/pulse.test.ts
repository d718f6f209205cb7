import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { Pulse } from '../../../../agent/vips/keepalived/pulse.ts';

const pulseOf = (pid: number | undefined, advertInterval = 200): Pulse =>
  new Pulse(
    async () => pid,
    () => advertInterval,
  );

async function stopped(t: ExecutionContext): Promise<number> {
  const child = spawn('sleep', ['60']);
  t.teardown(() => child.kill('SIGKILL'));
  await once(child, 'spawn');
  child.kill('SIGSTOP');
  await delay(50);
  return child.pid ?? 0;
}

test('Pulse reports a process as still that has not woken for two seconds', async (t) => {
  const pulse = pulseOf(await stopped(t));
  t.false(await pulse.isStill(10_000));
  t.false(await pulse.isStill(12_000));
  t.true(await pulse.isStill(12_001));
  pulse.reset();
  t.false(await pulse.isStill(12_002));
});

test('Pulse waits for five advertisements if that is longer', async (t) => {
  const pulse = pulseOf(await stopped(t), 10_000);
  t.false(await pulse.isStill(0));
  t.false(await pulse.isStill(50_000));
  t.true(await pulse.isStill(50_001));
});

test('Pulse does not report a process as still that wakes now and then', async (t) => {
  const pulse = pulseOf(process.pid);
  for (let now = 0; now < 30_000; now += 3_000) {
    t.false(await pulse.isStill(now));
    await delay(20);
  }
});

test('Pulse does not report a missing process as still', async (t) => {
  for (const pid of [2 ** 22 + 1, undefined]) {
    const pulse = pulseOf(pid);
    t.false(await pulse.isStill(0));
    t.false(await pulse.isStill(60_000));
  }
});
