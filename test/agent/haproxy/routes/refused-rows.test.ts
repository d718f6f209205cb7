import ava from 'ava';
import { applyPlans } from '../../../../agent/haproxy/apply.ts';
import { type HaproxyPlan, planLoadBalancer } from '../../../../agent/haproxy/plan.ts';
import type { MapName, MapRow } from '../../../../agent/haproxy/routes/maps.ts';
import { RefusedRows } from '../../../../agent/haproxy/routes/refused-rows.ts';
import { mapFile } from '../../../../agent/haproxy/routes/route-files.ts';
import { tablesOf } from '../../../../agent/haproxy/routes/tables.ts';
import type { RowCommand } from '../../../../agent/haproxy/socket/commands.ts';
import type { RouteRule } from '../../../../agent/model/routes.ts';
import { freePort } from '../../../support/basics/free-port.ts';
import { requires } from '../../../support/basics/requirements.ts';
import { startRendered } from '../../../support/haproxy/rendered-haproxy.ts';
import { request } from '../../../support/traffic/echo.ts';
import { entryOf, gatewayOf, matchOf, poolOf, sectionOf } from '../../../support/values/routes.ts';

const test = requires(ava, { haproxy: true });

const NAME = 'gateway:default:edge:tcp:80:v4';

test('A row that HAProxy refuses twice is an outcome of its own, and other rows are sent', async (t) => {
  const position = { address: '127.0.0.1', port: await freePort() };
  const gateway = gatewayOf(position, [sectionOf('one', '*', { '*': [entryOf('/', 'a')] })]);
  const { worker, paths } = await startRendered(t, [gateway, poolOf('a', [])]);
  const command = (row: MapRow): RowCommand => ({
    kind: 'AddMapEntry',
    map: mapFile(paths.routes, row.map),
    key: row.key,
    value: row.value,
    position: { listener: NAME, table: 'T', row },
  });
  const refused: MapRow = { map: 'shares', key: 'no-address', value: 'pool:a' };
  const accepted: MapRow = { map: 'prefix', key: 'T/x/', value: 'pool:a' };
  const plan = (...rows: readonly MapRow[]): HaproxyPlan => ({
    key: gateway.key,
    effort: 'runtime',
    commands: rows.map(command),
    reload: undefined,
    unneededRows: new Map(),
  });
  const outcome = await applyPlans(worker, [plan(refused, accepted)], () => [plan(refused)]);
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

const NO_LIMITS = { allowedCidrs: [], deniedCidrs: [], requestRate: 0, bodyBytes: 0 };

for (const [map, guards] of [
  ['clients', { limits: { ...NO_LIMITS, allowedCidrs: ['203.0.113.0/24'] } }],
  ['rate', { limits: { ...NO_LIMITS, requestRate: 5 } }],
  ['minute-rate', { limits: { ...NO_LIMITS, minuteRate: 60 } }],
  ['at-once', { limits: { ...NO_LIMITS, requestsAtOnce: 5 } }],
  ['body', { limits: { ...NO_LIMITS, bodyBytes: 1_000 } }],
  ['certificate-name', { certificateName: 'CN=shop' }],
  ['auth', { auth: { secret: 'default/users', realm: 'a', removesHeader: false } }],
] as const satisfies readonly (readonly [MapName, Partial<RouteRule>])[])
  test(`A refused row of the map "${map}" closes every way to its rule, and no other`, (t) => {
    const gateway = gatewayOf({ address: '127.0.0.1', port: 80 }, [
      sectionOf('one', '*', {
        'a.b': [
          entryOf('/x', 'a', guards),
          entryOf('=/y', 'a', guards),
          entryOf(matchOf('/z', { method: 'GET' }), 'a', guards),
          entryOf('/', 'b'),
        ],
      }),
    ]);
    const [listener] = gateway.listeners;
    if (listener === undefined) throw new Error('No listener');
    const rows = new RefusedRows();
    const all = [...rows.tablesOf(listener).values()].flat();
    const guard = all.find((row) => row.map === map);
    if (guard === undefined) throw new Error('No row');
    const leads = (of: readonly MapRow[], to: string) =>
      of.filter(({ map: each, value }) => ['exact', 'prefix', 'lists'].includes(each) && value.includes(to));
    t.is(leads(all, guard.key).length, 3);
    rows.refuse(listener.name, guard, 'No.');
    const left = [...rows.tablesOf(listener).values()].flat();
    t.deepEqual(leads(left, guard.key), []);
    t.is(leads(left, 'e403').length, 3);
    t.deepEqual(leads(left, 'pool:default:b').length, leads(all, 'pool:default:b').length);
    t.regex(rows.problemsOf(gateway)[0]?.message ?? '', /No\.; the route is closed with status 403$/);
  });

for (const map of ['guarded', 'strict'] as const)
  test(`A refused row of the map "${map}", which closes a whole host, shuts the listener until a reload boots with it`, async (t) => {
    const position = { address: '127.0.0.1', port: await freePort() };
    const gateway = gatewayOf(position, [sectionOf('one', '*', { '*': [entryOf('/', 'a')] })]);
    const { worker, paths } = await startRendered(t, [gateway, poolOf('a', [])]);
    const row: MapRow = { map, key: 'T', value: '1' };
    const plan: HaproxyPlan = {
      key: gateway.key,
      effort: 'runtime',
      commands: [
        {
          kind: 'AddMapEntry',
          // The worker does not have this one.
          map: mapFile(paths.routes, 'missing' as MapName),
          key: row.key,
          value: row.value,
          position: { listener: NAME, table: 'T', row },
        },
      ],
      reload: undefined,
      unneededRows: new Map(),
    };
    const outcome = await applyPlans(worker, [plan], () => [plan]);
    t.deepEqual(outcome.refusedRows, []);
    t.deepEqual(outcome.beyondRepair, [NAME]);
    await t.throwsAsync(request(position, '/'), { code: 'ECONNREFUSED' });
    const again = planLoadBalancer({
      key: gateway.key,
      running: worker.running,
      before: gateway,
      after: gateway,
    });
    t.deepEqual(
      again.commands.filter(({ kind }) => kind === 'EnableFrontend'),
      [],
      'it stays shut',
    );
  });
