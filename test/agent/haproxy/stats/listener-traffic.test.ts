import test from 'ava';
import { type Column, positionOf } from '../../../../agent/haproxy/stats/columns.ts';
import { listenerTraffic } from '../../../../agent/haproxy/stats/listener-traffic.ts';
import { newSeries, type Series, type SeriesKind } from '../../../../agent/haproxy/stats/series.ts';
import type { Listener } from '../../../../agent/model/load-balancer.ts';

function series(
  kind: SeriesKind,
  name: string,
  counted: Partial<Record<Column, number>>,
  more: Partial<Series> & { readonly routing?: object } = {},
): Series {
  const { routing, ...of } = more;
  const made = { ...newSeries(kind), source: { name, routing } as unknown as Listener, ...of };
  for (const [column, value] of Object.entries(counted)) made.values[positionOf(column as Column)] = value;
  return made;
}

const FRONT = { stot: 10, scur: 2, bin: 100, bout: 900, hrsp_5xx: 3 };
const POOL = { wretr: 4, wredis: 1, econ: 5, rtime: 7 };

test('listenerTraffic() joins what clients got with the way to the members', (t) => {
  const listener = [series('listener', 'web', FRONT, { isHttp: true }), series('listener', 'db', FRONT)];
  const pool = [series('pool', 'web', POOL, { isHttp: true }), series('pool', 'db', POOL)];
  const common = { total: 10, open: 2, bytesIn: 100, bytesOut: 900, retries: 5 };
  t.deepEqual(
    [...listenerTraffic({ listener, pool })],
    [
      { name: 'web', ...common, errors: 3, latency: 7 },
      { name: 'db', ...common, errors: 5, latency: Number.NaN },
    ],
  );
});

test('listenerTraffic() takes the connections of a pool of routes from its backend, and no latency from a listener with routes', (t) => {
  const listener = [series('listener', 'edge', FRONT, { isHttp: true, routing: {} })];
  const pool = [
    series('pool', 'edge', { rtime: 0 }, { isHttp: true, routing: {} }),
    series('pool', 'pool', { ...FRONT, ...POOL }, { isHttp: true }),
  ];
  const [edge, ofRoutes] = [...listenerTraffic({ listener, pool })];
  t.like(edge, { name: 'edge', total: 10, errors: 3, latency: Number.NaN });
  t.like(ofRoutes, { name: 'pool', total: 10, open: 2, errors: 3, retries: 5, latency: 7 });
});
