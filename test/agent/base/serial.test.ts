import test from 'ava';
import { serial } from '../../../agent/base/serial.ts';

test('serial() runs one piece of work at a time, in order', async (t) => {
  const { run } = serial();
  const seen: string[] = [];
  const work = (name: string, turns: number) => async () => {
    seen.push(`${name} begins`);
    for (let turn = 0; turn < turns; turn++) await Promise.resolve();
    seen.push(`${name} ends`);
    return name;
  };
  t.deepEqual(await Promise.all([run(work('a', 5)), run(work('b', 1))]), ['a', 'b']);
  t.deepEqual(seen, ['a begins', 'a ends', 'b begins', 'b ends']);
});

test('serial() continues after work that fails, and idle() never rejects', async (t) => {
  const { run, idle } = serial();
  const failed = run(() => Promise.reject(new Error('no')));
  const next = run(() => Promise.resolve(1));
  await idle();
  await t.throwsAsync(failed, { message: 'no' });
  t.is(await next, 1);
});
