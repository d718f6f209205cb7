import test from 'ava';
import { Lingering } from '../../../../agent/haproxy/routes/lingering.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';

function setUp() {
  const clock = new FakeClock();
  const due: (readonly string[])[] = [];
  const rows = { areWaiting: false };
  const pools = new Lingering({
    isWaiting: () => rows.areWaiting,
    onDue: (keys) => due.push(keys),
    clock,
  });
  return { clock, due, rows, pools };
}

test('Lingering reports a pool once, a second after it was first noted', async (t) => {
  const { clock, due, pools } = setUp();
  pools.note('pool:default/a');
  await clock.advance(900);
  pools.note('pool:default/a');
  pools.note('pool:default/b');
  t.false(pools.isDue('pool:default/a'));
  await clock.advance(100);
  t.deepEqual(due, [['pool:default/a']]);
  t.deepEqual([pools.isDue('pool:default/a'), pools.isDue('pool:default/b')], [true, false]);
  await clock.advance(5_000);
  t.deepEqual(due, [['pool:default/a'], ['pool:default/b']]);
  pools.forget('pool:default/a');
  t.false(pools.isDue('pool:default/a'));
});

test('Lingering does not report a pool that is used again', async (t) => {
  const { clock, due, pools } = setUp();
  pools.note('pool:default/a');
  pools.forget('pool:default/a');
  await clock.advance(2_000);
  t.deepEqual(due, []);
  pools.note('pool:default/a');
  await clock.advance(1_000);
  t.deepEqual(due, [['pool:default/a']]);
  pools.close();
});

test('Lingering reports no pool while rows wait for another one', async (t) => {
  const { clock, due, rows, pools } = setUp();
  rows.areWaiting = true;
  pools.note('pool:default/a');
  await clock.advance(3_500);
  t.deepEqual([due, pools.isDue('pool:default/a')], [[], false]);
  rows.areWaiting = false;
  await clock.advance(1_000);
  t.deepEqual([due, pools.isDue('pool:default/a')], [[['pool:default/a']], true]);
});
