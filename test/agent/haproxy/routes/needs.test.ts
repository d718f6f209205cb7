import test from 'ava';
import { rowId } from '../../../../agent/haproxy/routes/maps.ts';
import { leadingTo, poolsOf } from '../../../../agent/haproxy/routes/needs.ts';
import { pathRows } from '../../../../agent/haproxy/routes/path-rows.ts';
import { entryOf, forwardTo, matchOf, patternOf, poolName } from '../../../support/values/routes.ts';

const rows = pathRows(
  {
    host: patternOf('h'),
    entries: [
      entryOf(matchOf('/list', { method: 'PUT' }), 'new'),
      entryOf('/list', 'old'),
      entryOf('/plain', 'new'),
      entryOf('/weights', { old: 1, new: 1 }),
      entryOf('/rule', forwardTo('new', { timeout: 1 })),
      entryOf('/', 'old'),
    ],
  },
  'T',
);

test('poolsOf() gives the pools that rows lead to', (t) => {
  t.deepEqual([...poolsOf(rows)].sort(), [poolName('new'), poolName('old')]);
});

test('leadingTo() gives the rows that lead to a missing pool, also through other rows', (t) => {
  const leading = leadingTo(rows, new Set([poolName('new')]));
  const paths = rows.filter(({ map }) => map === 'prefix');
  t.deepEqual(
    paths
      .filter((row) => leading.has(rowId(row)))
      .map(({ key }) => key)
      .sort(),
    ['T/list/', 'T/plain/', 'T/rule/', 'T/weights/'],
  );
  t.is(leadingTo(rows, new Set([poolName('other')])).size, 0);
});
