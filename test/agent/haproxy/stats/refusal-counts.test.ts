import test from 'ava';
import {
  REFUSING_CHECKS,
  ROUTE_CHECKS,
  STATUS_CLASSES,
  UNREAD,
} from '../../../../agent/haproxy/routes/refusals.ts';
import { parseInfo } from '../../../../agent/haproxy/socket/readings.ts';
import { counterCount, positionOf } from '../../../../agent/haproxy/stats/columns.ts';
import { CounterTotals } from '../../../../agent/haproxy/stats/counter-totals.ts';
import { refusingChecks } from '../../../../agent/haproxy/stats/refusal-counts.ts';
import { parseEntry } from '../../../../agent/haproxy/stats/route-counts.ts';
import type { LoadBalancer } from '../../../../agent/model/load-balancer.ts';
import { entryOf, gatewayOf, sectionOf } from '../../../support/values/routes.ts';

const AUTH = { secret: 'default/users', realm: 'Shop', removesHeader: false };
const GATEWAY = gatewayOf({ address: '192.0.2.1', port: 80 }, [
  sectionOf('http', '*', {
    'a.example': [
      entryOf('/', 'a'),
      entryOf('/x', 'b', { route: 'HTTPRoute default/other', auth: AUTH, certificateName: 'CN=shop' }),
      entryOf('/y', 'b', { route: 'HTTPRoute default/other', action: { kind: 'answer', status: 403 } }),
    ],
  }),
]);
const LOAD_BALANCERS = new Map<string, LoadBalancer>([[GATEWAY.key, GATEWAY]]);
const LISTENER = GATEWAY.listeners[0]?.name ?? '';
const ROUTE = 'HTTPRoute/default/other';

const info = (pid: number) => parseInfo(`Version: 2.6.12\nPid: ${pid}\nStart_time_sec: 1\nStopping: 0`);

/** As HAProxy 3.0 writes an entry, with these counts of checks behind `before` others. */
function entry(key: string, counts: Readonly<Record<string, number>>, checks: readonly string[], before = 0) {
  const all = [...Array.from({ length: before }, () => 7), ...checks.map((check) => counts[check] ?? 0)];
  return `0x55d0: key=${key} use=1 exp=3599479 shard=0 ${all.map((count, at) => `gpc${at}=${count}`).join(' ')}`;
}

const refusals = (counts: Readonly<Record<string, number>>) =>
  parseEntry(LISTENER, entry('default', counts, REFUSING_CHECKS, UNREAD));
const ofRoute = (counts: Readonly<Record<string, number>>) =>
  parseEntry(undefined, entry(ROUTE, counts, ROUTE_CHECKS, STATUS_CLASSES));

/** By check, those that are not 0. */
function counted(totals: CounterTotals, kind: 'listenerCheck' | 'routeCheck') {
  const all = totals.series[kind].map(({ labels, values }) => [labels, values[positionOf('stot')]] as const);
  return Object.fromEntries(
    all
      .filter(([, value]) => value !== 0)
      .map(([labels, value]) => [/check="([^"]*)"/.exec(labels)?.[1], value]),
  );
}

test('There are no more checks than counters of a series', (t) => {
  t.true(REFUSING_CHECKS.length <= counterCount);
  t.is(new Set(REFUSING_CHECKS).size, REFUSING_CHECKS.length);
});

test('A listener has the checks that it and its routes may refuse by, and a route its own', (t) => {
  const { listeners, routes } = refusingChecks(GATEWAY);
  t.deepEqual(
    listeners.map(([{ name }, checks]) => [name, [...checks].sort()]),
    [
      [
        LISTENER,
        [
          ...[
            'ambiguous path',
            'answer',
            'clients of members',
            'host',
            'name in certificate',
            'path',
            'route',
          ],
          ...['share of namespace', 'source ranges', 'user'],
        ],
      ],
    ],
  );
  t.deepEqual([...(routes.get(ROUTE) ?? [])].sort(), [
    'answer',
    'clients of members',
    'name in certificate',
    'user',
  ]);
});

test('Refusals have a series for each check before they count, and keep it over workers', (t) => {
  const totals = new CounterTotals(() => 0, { countsRoutes: true });
  const round = (pid: number, ...all: readonly ReturnType<typeof refusals>[]): void => {
    const { row, end } = totals.round(info(pid), LOAD_BALANCERS);
    for (const each of all.flat()) row(each);
    end();
  };
  round(1);
  t.is(totals.series.listenerCheck.length, 10);
  t.regex(
    totals.series.listenerCheck[0]?.labels ?? '',
    /^namespace="default",service=".*,owner="gateway",check="/,
  );
  t.deepEqual(counted(totals, 'listenerCheck'), {});
  round(1, refusals({ user: 3, route: 1 }), ofRoute({ user: 2 }));
  t.deepEqual(counted(totals, 'listenerCheck'), { user: 3, route: 1 });
  t.deepEqual(counted(totals, 'routeCheck'), { user: 2 });
  for (const row of refusals({ user: 5, route: 1 })) totals.old(info(1), LOAD_BALANCERS)(row);
  round(2, refusals({ user: 1 }), ofRoute({ user: 1 }));
  t.deepEqual(counted(totals, 'listenerCheck'), { user: 6, route: 1 });
  t.deepEqual(counted(totals, 'routeCheck'), { user: 3 });
  const { end } = totals.round(info(2), new Map());
  end();
  t.deepEqual([totals.series.listenerCheck, totals.series.routeCheck], [[], []]);
});
