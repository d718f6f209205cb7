import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { Pulse } from '../../../../../agent/vips/keepalived/process/pulse.ts';

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

test('Pulse reports a process as slow that has not woken for two seconds', async (t) => {
  const pulse = pulseOf(await stopped(t));
  t.false(await pulse.isSlow(10_000));
  t.false(await pulse.isSlow(12_000));
  t.true(await pulse.isSlow(12_001));
  pulse.reset();
  t.false(await pulse.isSlow(12_002));
});

test('Pulse waits for five advertisements if that is longer', async (t) => {
  const pulse = pulseOf(await stopped(t), 10_000);
  t.false(await pulse.isSlow(0));
  t.false(await pulse.isSlow(50_000));
  t.true(await pulse.isSlow(50_001));
});

test('Pulse reports a process as slow that wakes for fewer than half of its advertisements', async (t) => {
  // Wakes once for each line.
  const child = spawn('cat', { stdio: ['pipe', 'pipe', 'inherit'] });
  t.teardown(() => child.kill('SIGKILL'));
  const lines = createInterface({ input: child.stdout });
  const [inTime, late] = [pulseOf(child.pid, 400), pulseOf(child.pid, 20)];
  const found: string[] = [];
  for (let now = 0; now < 4_000; now += 200) {
    const line = once(lines, 'line');
    child.stdin.write('\n');
    await line;
    found.push(`${await inTime.isSlow(now)} ${await late.isSlow(now)}`);
  }
  t.is(found[0], 'false false');
  t.is(found.at(-1), 'false true');
});

test('Pulse does not report a missing process as slow', async (t) => {
  for (const pid of [2 ** 22 + 1, undefined]) {
    const pulse = pulseOf(pid);
    t.false(await pulse.isSlow(0));
    t.false(await pulse.isSlow(60_000));
  }
});
