import test from 'ava';
import { parseListenerStats } from '../../../../agent/haproxy/socket/listener-stats.ts';
import { parseLoad } from '../../../../agent/haproxy/socket/readings.ts';

// As 2.6.12 says it, without the columns that are of no use here.
const HEADER = '# pxname,svname,qcur,scur,stot,status,type,rate,check_status,last_chk,last_agt,';
const STATS = `${HEADER}
a:b:tcp:80:v4,FRONTEND,,7,90,OPEN,0,12,,,,
a:b:tcp:80:v4,10.0.0.1:80,0,4,50,UP,2,8,L4OK,,,
a:b:tcp:80:v4,10.0.0.2:80,0,0,0,DOWN,2,0,L7STS,"HTTP status ""503"", not 200",,
a:b:tcp:80:v4,2001:db8::1:80,0,3,40,no check,2,4,,,,
a:b:tcp:80:v4,BACKEND,0,6,90,UP,1,11,,,,

`;

test('parseListenerStats() reads a listener and its members', (t) => {
  const { sessions, sessionRate, servers } = parseListenerStats(STATS);
  t.deepEqual([sessions, sessionRate], [7, 12]);
  t.deepEqual(Object.fromEntries(servers), {
    '10.0.0.1:80': { sessions: 4, sessionRate: 8 },
    '10.0.0.2:80': { sessions: 0, sessionRate: 0 },
    '2001:db8::1:80': { sessions: 3, sessionRate: 4 },
  });
});

test('parseListenerStats() takes the numbers of a backend where HAProxy tells nothing of its frontend', (t) => {
  const { sessions, sessionRate, servers } = parseListenerStats(STATS.replace(/^.*,FRONTEND,.*\n/m, ''));
  t.deepEqual([sessions, sessionRate, servers.size], [6, 11, 3]);
});

test('parseListenerStats() adds what members do in the second backend, where all are down', (t) => {
  const spare = STATS.replace(/^.*,FRONTEND,.*\n/m, '').replaceAll('a:b:tcp:80:v4', 'a:b:tcp:80:v4:all-down');
  const { sessions, servers } = parseListenerStats(STATS, spare);
  t.is(sessions, 7, 'The frontend has all of them');
  t.deepEqual(servers.get('10.0.0.1:80'), { sessions: 8, sessionRate: 16 });
  const without = parseListenerStats(spare, spare);
  t.deepEqual([without.sessions, without.sessionRate], [12, 22]);
});

test('parseListenerStats() refuses what is no table of it', (t) => {
  t.throws(() => parseListenerStats('No such proxy.\n'), { code: 'RUNTIME_REPLY', message: /No such proxy/ });
  t.throws(() => parseListenerStats(STATS.replace('scur', 'other')), { code: 'RUNTIME_REPLY' });
});

test('parseLoad() reads what HAProxy has to do, and 0 for what it does not say', (t) => {
  const text = 'Name: HAProxy\nCurrConns: 5\nCumConns: 9\nConnRate: 12\nMaxConnRate: 70\nIdle_pct: 96\n';
  t.deepEqual(parseLoad(text), { connections: 5, connectionRate: 12, busy: 4 });
  t.deepEqual(parseLoad(''), { connections: 0, connectionRate: 0, busy: 0 });
});
