import test from 'ava';
import { heldRows } from '../../../../agent/haproxy/routes/held-rows.ts';
import { rowId } from '../../../../agent/haproxy/routes/maps.ts';
import { leadingTo } from '../../../../agent/haproxy/routes/needs.ts';
import { pathRows } from '../../../../agent/haproxy/routes/path-rows.ts';
import type { RouteEntry, RouteLimits } from '../../../../agent/model/routes.ts';
import { entryOf, matchOf, patternOf, poolName } from '../../../support/values/routes.ts';

const limits: RouteLimits = { allowedCidrs: ['192.0.2.0/24'], deniedCidrs: [], requestRate: 0, bodyBytes: 0 };
const auth = { secret: 'default/users', realm: 'x', removesHeader: false };
const put = matchOf('/', { method: 'PUT' });

const rowsOf = (entries: readonly RouteEntry[]) => pathRows({ host: patternOf('h'), entries }, 'T');

/** What is held while the pool `new` is missing. */
function held(before: readonly RouteEntry[], after: readonly RouteEntry[]): readonly string[] {
  const wanted = rowsOf(after);
  const current = new Map(rowsOf(before).map((row) => [rowId(row), row]));
  const waiting = leadingTo(wanted, new Set([poolName('new')]));
  return heldRows(wanted, waiting, current).map((row) => `${rowId(row)} ${row.value}`);
}

for (const [title, before, after, expected] of [
  ['with ranges', [], [entryOf('/admin', 'new', { limits })], ['prefix T/admin/ e503']],
  ['with users', [], [entryOf('=/admin', 'new', { auth })], ['exact T/admin e503']],
  [
    'with a limit of bodies and a weight',
    [],
    [
      entryOf(
        '/admin',
        { old: 1, new: 1 },
        { limits: { ...limits, allowedCidrs: [], requestRate: 0, bodyBytes: 10 } },
      ),
    ],
    ['prefix T/admin/ e503'],
  ],
  ['that was open before', [entryOf('/', 'old')], [entryOf('/', 'new', { limits })], ['prefix T/ e503']],
] as const)
  test(`A path ${title} answers 503 until its pool is there`, (t) => {
    t.deepEqual(held([entryOf('/z', 'old'), ...before], [entryOf('/z', 'old'), ...after]), expected);
  });

for (const [title, before, after] of [
  ['without a guard', [], [entryOf('/x', 'new')]],
  ['whose pool is there', [], [entryOf('/x', 'old', { limits }), entryOf('/y', 'new')]],
  ['that was guarded before', [entryOf('/x', 'old', { limits })], [entryOf('/x', 'new', { limits })]],
  [
    'some of whose requests are guarded',
    [entryOf('/', 'old')],
    [entryOf(put, 'new', { limits }), entryOf('/', 'old')],
  ],
] as const)
  test(`A path ${title} is not held`, (t) => {
    t.deepEqual(held(before, after), []);
  });
