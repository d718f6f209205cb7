// The judge of counters in the soak: it finds one that goes back in the text that the agent really writes, and nothing else.

import test from 'ava';
import { parseInfo } from '../../../agent/haproxy/socket/readings.ts';
import { positionOf } from '../../../agent/haproxy/stats/columns.ts';
import { haproxyFamilies } from '../../../agent/haproxy/stats/families.ts';
import { newSeries } from '../../../agent/haproxy/stats/series.ts';
import { pieces, prometheusText } from '../../../health/scrape/exposition.ts';
import { CounterWatch } from './counter-watch.ts';

const WEB = 'namespace="default",service="web",port="80",protocol="TCP",family="v4"';

/** As the agent answers a scrape: `sessions` of a listener, by its labels. */
function scraped(sessions: Readonly<Record<string, number>>): string {
  const listener = Object.entries(sessions).map(([labels, count]) => {
    const series = newSeries('listener');
    series.labels = labels;
    series.values[positionOf('stot')] = count;
    series.values[positionOf('conn_tot')] = count;
    return series;
  });
  const families = haproxyFamilies({
    info: parseInfo('Version: 2.6.12\nPid: 1\nStart_time_sec: 1\nStopping: 0'),
    process: [],
    series: { listener, pool: [], member: [], route: [], listenerCheck: [], routeCheck: [] },
    oldWorkers: 0,
    oldConnections: 0,
    seconds: 0,
    age: () => 0,
  });
  return [...pieces(families, prometheusText)].join('');
}

/** What it finds in these scrapes of one host, each by a process. */
function found(...looks: readonly (readonly [pid: number, text: string])[]): readonly string[] {
  const watch = new CounterWatch();
  for (const [pid, text] of looks) watch.see('a', pid, text);
  if (watch.looks !== looks.length) throw new Error('It has not looked');
  return watch.backward;
}

test('CounterWatch finds each counter that goes back, with its series and values', (t) => {
  const faults = found([1, scraped({ [WEB]: 7 })], [1, scraped({ [WEB]: 8 })], [1, scraped({ [WEB]: 5 })]);
  t.true(faults.length >= 2, faults.join('\n'));
  for (const name of ['sessions', 'connections'])
    t.true(
      faults.some(
        (each) => each.includes(`headgate_listener_${name}_total{${WEB}}`) && each.endsWith(': 8 → 5'),
      ),
      faults.join('\n'),
    );
});

test('CounterWatch finds one that goes back of many that continue', (t) => {
  const others = Object.fromEntries(
    Array.from({ length: 20 }, (_, at) => [WEB.replace('web', `web-${at}`), at]),
  );
  const faults = found([1, scraped({ ...others, [WEB]: 7 })], [1, scraped({ ...others, [WEB]: 6 })]);
  t.true(faults.length > 0);
  t.true(faults.every((each) => each.includes(WEB)));
});

test('CounterWatch accepts counters that rise, of a new process, and of what was away in between', (t) => {
  t.deepEqual(found([1, scraped({ [WEB]: 7 })], [1, scraped({ [WEB]: 7 })], [1, scraped({ [WEB]: 9 })]), []);
  t.deepEqual(found([1, scraped({ [WEB]: 7 })], [2, scraped({ [WEB]: 0 })]), []);
  t.deepEqual(found([1, scraped({ [WEB]: 7 })], [1, scraped({})], [1, scraped({ [WEB]: 1 })]), []);
});

test('CounterWatch lets a listener begin again that the kernel serves now, and no other', (t) => {
  // The kernel counts no sessions.
  const kernel = (count: number): string => `headgate_listener_connections_total{${WEB}} ${count}\n`;
  t.deepEqual(found([1, scraped({ [WEB]: 7 })], [1, kernel(0)], [1, scraped({ [WEB]: 1 })]), []);
  t.is(found([1, kernel(7)], [1, kernel(6)]).length, 1);
});

test('CounterWatch lets a listener begin again that may have changed its engine twice since the last look', (t) => {
  const see = (changing?: string): readonly string[] => {
    const watch = new CounterWatch();
    watch.see('a', 1, scraped({ [WEB]: 7 }));
    watch.see('a', 1, scraped({ [WEB]: 1 }), changing);
    return watch.backward;
  };
  t.deepEqual(see('web'), []);
  t.true(see('dns').length > 0);
});
