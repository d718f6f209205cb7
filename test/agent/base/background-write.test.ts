import test from 'ava';
import { BackgroundWrite } from '../../../agent/base/background-write.ts';
import { FakeClock } from '../../support/basics/fake-clock.ts';

function background(write: () => Promise<void> = () => Promise.resolve(), rest = 0) {
  const clock = new FakeClock();
  const seen = { writes: 0, faults: [] as string[] };
  const made = new BackgroundWrite({
    write: () => {
      seen.writes++;
      return write();
    },
    delayMs: 100,
    rest,
    retryMs: 1_000,
    onFault: (message) => seen.faults.push(message),
    clock,
  });
  return { clock, made, seen };
}

test('BackgroundWrite writes changes that come together once', async (t) => {
  const { clock, made, seen } = background();
  made.soon();
  made.soon();
  await clock.advance(99);
  t.is(seen.writes, 0);
  await clock.advance(1);
  t.is(seen.writes, 1);
  await clock.advance(10_000);
  t.is(seen.writes, 1);
});

test('BackgroundWrite rests after a write for a multiple of its length', async (t) => {
  const { clock, made, seen } = background(async () => clock.hang(50), 10);
  made.soon();
  await clock.advance(100);
  made.soon();
  await clock.advance(499);
  t.is(seen.writes, 1);
  await clock.advance(1);
  t.is(seen.writes, 2);
});

test('BackgroundWrite retries a failed write, and reports a lasting fault once', async (t) => {
  const results: (Error | undefined)[] = [new Error('full'), new Error('full')];
  const { clock, made, seen } = background(async () => {
    const result = results.shift();
    if (result !== undefined) throw result;
  });
  made.soon();
  await clock.advance(100);
  t.is(made.fault, 'full');
  t.deepEqual(made.file('/state/x'), { path: '/state/x', writtenAt: 0, fault: 'full' });
  made.soon();
  await clock.advance(999);
  t.is(seen.writes, 1);
  await clock.advance(1_001);
  t.deepEqual(seen, { writes: 3, faults: ['full'] });
  t.is(made.fault, '');
  t.deepEqual(made.file('/state/x'), { path: '/state/x', writtenAt: clock.wall(), fault: '' });
});

test('close() writes what is due, once, and nothing that is not', async (t) => {
  const { clock, made, seen } = background();
  made.soon();
  await made.close();
  await clock.advance(1_000);
  t.is(seen.writes, 1);
  const idle = background();
  await idle.made.close();
  t.is(idle.seen.writes, 0);
});
