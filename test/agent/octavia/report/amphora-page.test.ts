import test from 'ava';
import { amphoraPage } from '../../../../agent/octavia/report/amphora-page.ts';
import type { AmphoraListener, AmphoraStatus } from '../../../../agent/octavia/report/amphora-report.ts';

const STATUS: AmphoraStatus = {
  amphora: { id: 'a', topology: 'SINGLE', address: '[::]:9443' },
  ...{ version: '1.2.3', startedAt: '', fault: '' },
  heartbeat: { controllers: [], sent: 0, lastAt: '', lastTo: '', fault: '' },
  loadBalancers: [
    {
      ...{ id: 'lb', listeners: 1, isRunning: true, text: 'abc', since: '' },
      ...{ isBehind: true, lastReload: 'bind differs', fault: 'x'.repeat(5_000) },
    },
  ],
};

const listener = (
  id: string,
  status: string,
  members: Readonly<Record<string, string>>,
): AmphoraListener => ({
  ...{ id, loadBalancer: 'lb', type: 'HTTP', place: '10.0.0.10:80', engine: 'haproxy' },
  ...{ status, connections: 2 },
  pools: [{ id: 'pool', status: 'UP', members }],
});

test('amphoraPage() has the status, sums of all listeners, and the worst listener first', (t) => {
  const { summary, list } = amphoraPage('host', STATUS, [
    listener('well', 'OPEN', { one: 'UP', two: 'no check', three: 'MAINT' }),
    listener('ill', 'OPEN', { one: 'UP', two: 'DOWN' }),
    listener('out', '', {}),
  ]);
  t.like(summary, { host: 'host', version: '1.2.3', amphora: STATUS.amphora });
  t.like(summary.loadBalancers[0], { id: 'lb', isBehind: true, lastReload: 'bind differs' });
  t.deepEqual(summary.listeners, { all: 3, unserved: 1 });
  t.deepEqual(summary.members, { ready: 3, down: 1, all: 5 });
  t.deepEqual(
    list.rows.map(({ id }) => id),
    ['out', 'ill', 'well'],
  );
  t.deepEqual(
    list.rows[1]?.pools[0]?.members.map(({ id }) => id),
    ['two', 'one'],
  );
});

test('amphoraPage() is cut to what a page holds, and says how much is left out', (t) => {
  const members = Object.fromEntries(
    Array.from({ length: 500 }, (_, at) => [`m${at}`, at === 499 ? 'DOWN' : 'UP']),
  );
  const many = Array.from({ length: 300 }, (_, at) => listener(`${at}`, 'OPEN', members));
  const { summary, list } = amphoraPage('host', STATUS, many);
  t.is(list.found, 300);
  t.is(list.rows.length, 100);
  const [pool] = list.rows[0]?.pools ?? [];
  t.like(pool, { moreMembers: 450, members: { length: 50, 0: { id: 'm499', status: 'DOWN' } } });
  t.is(summary.members.all, 150_000);
  t.is(summary.loadBalancers[0]?.fault.length, 1_001);
});

test('amphoraPage() keeps a hostile name as it is: its event stays one line of JSON', (t) => {
  const hostile = '"><script>\n\nevent: x\ndata: {}';
  const { list } = amphoraPage('host', STATUS, [listener(hostile, 'OPEN', { [hostile]: 'UP' })]);
  t.is(list.rows[0]?.pools[0]?.members[0]?.id, hostile);
  t.false(JSON.stringify(list).includes('\n'));
});
