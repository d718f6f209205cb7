import test from 'ava';
import { parseInfo } from '../../../../agent/haproxy/socket/readings.ts';
import { positionOf } from '../../../../agent/haproxy/stats/columns.ts';
import { CounterTotals } from '../../../../agent/haproxy/stats/counter-totals.ts';
import { haproxyFamilies } from '../../../../agent/haproxy/stats/families.ts';
import { countedRoutes, parseEntry, routeSeries } from '../../../../agent/haproxy/stats/route-counts.ts';
import type { LoadBalancer } from '../../../../agent/model/load-balancer.ts';
import { entryOf, gatewayOf, sectionOf } from '../../../support/values/routes.ts';

const GATEWAY = gatewayOf({ address: '192.0.2.1', port: 80 }, [
  sectionOf('http', '*', {
    'a.example': [entryOf('/', 'a'), entryOf('/x', 'b', { route: 'HTTPRoute default/other' })],
    'b.example': [entryOf('/', 'b')],
  }),
]);
const ROUTE = 'HTTPRoute/default/route';
const LOAD_BALANCERS = new Map<string, LoadBalancer>([[GATEWAY.key, GATEWAY]]);

function line(route: string, ...counts: readonly number[]): string {
  return `0x55d0: key=${route} use=0 exp=3599479 ${counts.map((count, at) => `gpc${at}=${count}`).join(' ')}`;
}

function row(...counts: readonly number[]) {
  const [parsed] = parseEntry(undefined, line(ROUTE, ...counts));
  if (parsed === undefined) throw new Error('Not a row');
  return parsed;
}

const info = (pid: number) =>
  parseInfo(`Version: 2.6.12\nPid: ${pid}\nStart_time_sec: 1\nStopping: 0\nCumConns: 5`);

test('parseEntry() reads the counters of an entry, and no other line', (t) => {
  const { name, values } = row(1, 2, 3, 4, 5);
  t.is(name, ROUTE);
  t.deepEqual(
    (['hrsp_1xx', 'hrsp_2xx', 'hrsp_3xx', 'hrsp_4xx', 'hrsp_5xx'] as const).map(
      (column) => values[positionOf(column)],
    ),
    [1, 2, 3, 4, 5],
  );
  for (const other of ['', '# table: headgate:routes, type: string, size:102400, used:1', 'Unknown table.'])
    t.deepEqual(parseEntry(undefined, other), []);
});

test('countedRoutes() names each route of a load balancer once', (t) => {
  t.deepEqual([...countedRoutes(GATEWAY)], [ROUTE, 'HTTPRoute/default/other']);
});

test('routeSeries() gives the labels of a route', (t) => {
  t.is(routeSeries('GRPCRoute/shop/api'), 'kind="GRPCRoute",namespace="shop",route="api"');
});

test('A route keeps its counts over a new worker without an entry, and ends with the route', (t) => {
  const totals = new CounterTotals(() => 0, { countsRoutes: true });
  const counted = () => totals.series.route.map(({ values }) => values[positionOf('hrsp_2xx')]);
  const round = (pid: number, counts: readonly number[] | undefined, all = LOAD_BALANCERS) => {
    const { row: add, end } = totals.round(info(pid), all);
    if (counts !== undefined) add(row(...counts));
    end();
  };
  round(1, undefined);
  t.deepEqual(new Set(counted()), new Set([0]), 'routes without requests have series');
  round(1, [0, 7, 0, 0, 0]);
  t.is(counted()[0], 7);
  totals.old(info(1), LOAD_BALANCERS)(row(0, 9, 0, 0, 0));
  round(2, undefined);
  t.is(counted()[0], 9);
  round(2, [0, 3, 0, 0, 0]);
  t.is(counted()[0], 12);
  round(2, [0, 1, 0, 0, 0]);
  t.is(counted()[0], 13, 'an entry that has expired begins at 0');
  round(2, [0, 1, 0, 0, 0], new Map());
  t.deepEqual(counted(), []);
});

test('Without the setting routes have no series', (t) => {
  const totals = new CounterTotals(() => 0);
  const { row: add, end } = totals.round(info(1), LOAD_BALANCERS);
  add(row(0, 1, 0, 0, 0));
  end();
  t.deepEqual(totals.series.route, []);
});

test('The metrics of routes have a class each', (t) => {
  const totals = new CounterTotals(() => 0, { countsRoutes: true });
  const { row: add, end } = totals.round(info(1), LOAD_BALANCERS);
  add(row(1, 2, 3, 4, 5));
  end();
  const sample = {
    info: info(1),
    process: totals.process,
    series: totals.series,
    oldWorkers: 0,
    oldConnections: 0,
    seconds: 0,
    age: () => 0,
  };
  const family = haproxyFamilies(sample).find(({ name }) => name === 'headgate_route_http_responses_total');
  const [first] = totals.series.route;
  t.deepEqual(
    family?.parts.map(({ labels, value }) => [labels, first && value(first)]),
    [
      ['code="1xx"', 1],
      ['code="2xx"', 2],
      ['code="3xx"', 3],
      ['code="4xx"', 4],
      ['code="5xx"', 5],
    ],
  );
});
