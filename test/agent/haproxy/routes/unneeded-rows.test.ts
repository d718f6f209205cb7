import test from 'ava';
import type { MapRow } from '../../../../agent/haproxy/routes/maps.ts';
import { UnneededRows } from '../../../../agent/haproxy/routes/unneeded-rows.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';

const row = (key: string): MapRow => ({ map: 'lists', key, value: 'x' });

test('UnneededRows reports a listener a second after its rows were no longer needed', async (t) => {
  const clock = new FakeClock();
  const due: (readonly string[])[] = [];
  const rows = new UnneededRows((listeners) => due.push(listeners), clock);
  rows.note('l', new Map([['t', [row('a')]]]));
  await clock.advance(600);
  rows.note('l', new Map([['t', [row('a'), row('b')]]]));
  t.false(rows.isDue('l', 't', row('a')));
  await clock.advance(400);
  t.deepEqual(due, [['l']]);
  t.true(rows.isDue('l', 't', row('a')));
  t.false(rows.isDue('l', 't', row('b')), 'each row has its own second');
  rows.note('l', new Map([['t', [row('b')]]]));
  await clock.advance(600);
  t.deepEqual(due, [['l'], ['l']]);
});

test('UnneededRows lets the rows of a rule that asks be until its server must have answered', async (t) => {
  const clock = new FakeClock();
  const due: (readonly string[])[] = [];
  const rows = new UnneededRows((listeners) => due.push(listeners), clock);
  const asks: MapRow = { map: 'external-auth', key: 'r:1', value: 'x' };
  rows.note('l', new Map([['t', [{ map: 'backend', key: 'r:1', value: 'y' }, asks]]]));
  await clock.advance(16_000);
  t.deepEqual(due, []);
  await clock.advance(4_000);
  t.deepEqual(due, [['l']]);
  t.true(rows.isDue('l', 't', asks));
});

test('UnneededRows forgets a row that is needed again', async (t) => {
  const clock = new FakeClock();
  const due: (readonly string[])[] = [];
  const rows = new UnneededRows((listeners) => due.push(listeners), clock);
  rows.note('l', new Map([['t', [row('a')]]]));
  rows.note('l', new Map([['t', []]]));
  await clock.advance(2_000);
  t.deepEqual(due, []);
  rows.note('l', new Map([['t', [row('a')]]]));
  t.false(rows.isDue('l', 't', row('a')));
  rows.close();
});
