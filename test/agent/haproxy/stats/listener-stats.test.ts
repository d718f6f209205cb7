import test from 'ava';
import { allColumns } from '../../../../agent/haproxy/stats/columns.ts';
import { parseListenerStats } from '../../../../agent/haproxy/stats/listener-stats.ts';

const TEXTS = ['pxname', 'svname', 'status', 'check_status', 'mode', 'last_chk'];
const HEADER = `# ${[...TEXTS, ...allColumns].join(',')},`;

function row(server: string, scur: number, rate: number, lastCheck = ''): string {
  const numbers = allColumns.map((column) => ({ scur, rate })[column as string] ?? '');
  return `a:b:tcp:80:v4,${server},UP,,tcp,${lastCheck},${numbers.join(',')},`;
}

const STATS = [
  HEADER,
  row('FRONTEND', 7, 12),
  row('10.0.0.1:80', 4, 8),
  row('10.0.0.2:80', 0, 0, '"HTTP status ""503"", not 200"'),
  row('2001:db8::1:80', 3, 4),
  row('BACKEND', 6, 11),
  '',
  '',
].join('\n');

test('parseListenerStats() reads a listener and its members', (t) => {
  const { sessions, sessionRate, servers } = parseListenerStats(STATS);
  t.deepEqual([sessions, sessionRate], [7, 12]);
  t.deepEqual(Object.fromEntries(servers), {
    '10.0.0.1:80': { sessions: 4, sessionRate: 8 },
    '10.0.0.2:80': { sessions: 0, sessionRate: 0 },
    '2001:db8::1:80': { sessions: 3, sessionRate: 4 },
  });
});

test('parseListenerStats() returns the numbers of the backend if the answer has no frontend', (t) => {
  const { sessions, sessionRate, servers } = parseListenerStats(STATS.replace(/^.*,FRONTEND,.*\n/m, ''));
  t.deepEqual([sessions, sessionRate, servers.size], [6, 11, 3]);
});

test('parseListenerStats() adds the numbers of the fallback backend', (t) => {
  const spare = STATS.replace(/^.*,FRONTEND,.*\n/m, '').replaceAll('a:b:tcp:80:v4', 'a:b:tcp:80:v4:all-down');
  const { sessions, servers } = parseListenerStats(STATS, spare);
  t.is(sessions, 7, 'The frontend has all of them');
  t.deepEqual(servers.get('10.0.0.1:80'), { sessions: 8, sessionRate: 16 });
  const without = parseListenerStats(spare, spare);
  t.deepEqual([without.sessions, without.sessionRate], [12, 22]);
});

test('parseListenerStats() throws on any other answer', (t) => {
  t.throws(() => parseListenerStats('No such proxy.\n'), { code: 'RUNTIME_REPLY', message: /No such proxy/ });
  t.throws(() => parseListenerStats(STATS.replace('scur', 'other')), { code: 'RUNTIME_REPLY' });
});
