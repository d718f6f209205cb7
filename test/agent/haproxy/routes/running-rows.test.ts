import test from 'ava';
import { RunningRows } from '../../../../agent/haproxy/routes/running-rows.ts';
import { tablesOf } from '../../../../agent/haproxy/routes/tables.ts';
import type { HostRoutes } from '../../../../agent/model/routes.ts';
import { entryOf, gatewayOf, sectionOf } from '../../../support/values/routes.ts';

const NAME = 'edge';

/** The routes of a thousand hosts, then after each of so many changes of one of them. */
function* changes(count: number) {
  const host = (at: number, pool: string): HostRoutes => ({
    host: { kind: 'exact', suffix: `h${at}.example.org` },
    entries: [entryOf('/', pool)],
  });
  let hosts = Array.from({ length: 1_000 }, (_, at) => host(at, 'a'));
  for (let at = 0; at <= count; at++) {
    if (at > 0) hosts = hosts.with(500, host(500, `b${at}`));
    const [listener] = gatewayOf({ address: '127.0.0.1', port: 80 }, [
      { ...sectionOf('one', '*'), hosts },
    ]).listeners;
    if (listener === undefined) throw new Error('No listener');
    yield tablesOf(listener);
  }
}

test('RunningRows looks at the tables that have changed only, also while earlier changes are on their way', (t) => {
  const rows = new RunningRows();
  let turn = 0;
  for (const tables of changes(3)) {
    if (turn++ === 0) {
      rows.boot(NAME, tables);
      continue;
    }
    let looks = 0;
    const get = tables.get.bind(tables);
    tables.get = (name) => {
      looks++;
      return get(name);
    };
    // None of the rows is there yet.
    t.is(rows.differing(NAME, tables).length, 1);
    t.is(looks, 1);
  }
});
