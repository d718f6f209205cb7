import ava from 'ava';
import { applyPlans } from '../../../../agent/haproxy/apply.ts';
import type { HaproxyPlan } from '../../../../agent/haproxy/plan.ts';
import type { Row } from '../../../../agent/haproxy/routes/maps.ts';
import { RefusedRows } from '../../../../agent/haproxy/routes/refused-rows.ts';
import { mapFile } from '../../../../agent/haproxy/routes/route-files.ts';
import { tablesOf } from '../../../../agent/haproxy/routes/tables.ts';
import type { RowCommand } from '../../../../agent/haproxy/socket/commands.ts';
import { freePort } from '../../../support/basics/free-port.ts';
import { requires } from '../../../support/basics/requirements.ts';
import { startRendered } from '../../../support/haproxy/rendered-haproxy.ts';
import { entryOf, gatewayOf, poolOf, sectionOf } from '../../../support/values/routes.ts';

const test = requires(ava, { haproxy: true });

const NAME = 'gateway:default:edge:tcp:80:v4';

test('A row that HAProxy refuses twice is an outcome of its own, and other rows are sent', async (t) => {
  const place = { address: '127.0.0.1', port: await freePort() };
  const gateway = gatewayOf(place, [sectionOf('one', '*', { '*': [entryOf('/', 'a')] })]);
  const { worker, paths } = await startRendered(t, [gateway, poolOf('a', [])]);
  const command = (row: Row): RowCommand => ({
    kind: 'AddMapEntry',
    map: mapFile(paths.routes, row.map),
    key: row.key,
    value: row.value,
    place: { listener: NAME, table: 'T', row },
  });
  const refused: Row = { map: 'shares', key: 'no-address', value: 'pool:a' };
  const accepted: Row = { map: 'prefix', key: 'T/x/', value: 'pool:a' };
  const plan = (...rows: readonly Row[]): HaproxyPlan => ({
    key: gateway.key,
    effort: 'runtime',
    commands: rows.map(command),
    reload: undefined,
    unneededRows: new Map(),
  });
  const outcome = await applyPlans(worker, [plan(refused, accepted)], () => plan(refused));
  t.deepEqual(outcome.acknowledged, [command(accepted)]);
  t.deepEqual(outcome.beyondRepair, []);
  const [{ row, listener, reply = '' } = {}] = outcome.refusedRows;
  t.deepEqual([row, listener], [refused, NAME]);
  t.regex(reply, /no-address/);
  t.deepEqual([...worker.running.rows.rowsOf(NAME, 'T').values()], [accepted]);
});

test('RefusedRows leaves out a refused row, keeps the rows of other tables, and reports the row while it is desired', (t) => {
  const gateway = (path: string) =>
    gatewayOf({ address: '127.0.0.1', port: 80 }, [
      sectionOf('one', '*', { 'a.b': [entryOf(path, 'a'), entryOf('/', 'b')], 'c.d': [entryOf('/', 'a')] }),
    ]);
  const rows = new RefusedRows();
  const before = gateway('/x');
  const [listener] = before.listeners;
  if (listener === undefined) throw new Error('No listener');
  const all = tablesOf(listener);
  t.is(rows.tablesOf(listener), all);
  const [row] = [...all.values()].flat().filter(({ key }) => key.endsWith('/x/'));
  if (row === undefined) throw new Error('No row');
  rows.refuse(listener.name, row, 'No.');
  const left = rows.tablesOf(listener);
  t.deepEqual(
    [...left]
      .filter(([name, some]) => all.get(name) !== some)
      .map(([name, some]) => [name.slice(11), some.length]),
    [['a.b', 1]],
  );
  t.is(rows.tablesOf(listener), left);
  t.deepEqual(
    rows.problemsOf(before).map(({ object, reason, message }) => [object, reason, message]),
    [
      [
        'Gateway default/edge',
        'ConfigurationRejected',
        `HAProxy refuses a row of a route, "prefix ${row.key}": No.`,
      ],
    ],
  );
  t.deepEqual(rows.problemsOf(gateway('/y')), []);
});
