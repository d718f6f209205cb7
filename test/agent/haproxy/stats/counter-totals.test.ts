import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import fc from 'fast-check';
import { parseInfo } from '../../../../agent/haproxy/socket/readings.ts';
import { positionOf } from '../../../../agent/haproxy/stats/columns.ts';
import { type Counts, readCounts, writeCounts } from '../../../../agent/haproxy/stats/counter-file.ts';
import { CounterTotals } from '../../../../agent/haproxy/stats/counter-totals.ts';
import { haproxyFamilies } from '../../../../agent/haproxy/stats/families.ts';
import type { Series } from '../../../../agent/haproxy/stats/series.ts';
import { parseStatRows } from '../../../../agent/haproxy/stats/stat-rows.ts';
import type { LoadBalancer } from '../../../../agent/model/load-balancer.ts';
import { endpoint, service, slice } from '../../../support/values/build.ts';
import { loadBalancerOf, translated } from '../../../support/values/translated.ts';

const HEADER =
  '# pxname,svname,qcur,scur,rate,slim,stot,bin,bout,ereq,econ,eresp,wretr,wredis,status,weight,act,chkfail,chkdown,downtime,type,check_status,check_duration,hrsp_1xx,hrsp_2xx,hrsp_3xx,hrsp_4xx,hrsp_5xx,hrsp_other,req_tot,cli_abrt,srv_abrt,qtime,ctime,rtime,ttime,last_chk,mode,conn_tot,dcon,dses,new,';
const LISTENER = 'default:web:tcp:80:v4';

function line(
  server: string,
  sessions: number,
  {
    check = '',
    last = '',
    name = LISTENER,
    mode = 'tcp',
    waiting = 0,
    status = 'UP',
    downs = 0,
    downtime = 0,
  } = {},
): string {
  const type = server === 'FRONTEND' ? 0 : server === 'BACKEND' ? 1 : 2;
  return `${name},${server},${waiting},1,0,,${sessions},10,20,,0,0,0,0,${status},16,1,,${downs},${downtime},${type},${check},,,,,,,,,${sessions},0,1,2,0,4,${last},${mode},,,,x,`;
}

function info(pid: number, start = 1): string {
  return `Version: 2.6.12\nPid: ${pid}\nStart_time_sec: ${start}\nStopping: 0\nCumConns: 5`;
}

/** A complete round. */
function read(
  counters: CounterTotals,
  pid: number,
  lines: readonly string[],
  loadBalancers: ReadonlyMap<string, LoadBalancer> = new Map(),
): void {
  const { row, end } = counters.round(parseInfo(info(pid)), loadBalancers);
  parseStatRows([HEADER, ...lines].join('\n')).forEach(row);
  end();
}

function newTotals(now: () => number = () => 0): CounterTotals {
  return new CounterTotals(now);
}

/** The content of the file for the next agent. */
function kept(counters: CounterTotals, isClean: boolean): Counts {
  return structuredClone(counters.counts(isClean));
}

/** Listeners, then members, then pools. */
function seriesOf({ series }: CounterTotals): readonly Series[] {
  return [...series.listener, ...series.member, ...series.pool];
}

function totals(
  counters: CounterTotals,
  column: 'stot' | 'bin' | 'chkdown' | 'downtime' = 'stot',
): readonly (number | undefined)[] {
  return seriesOf(counters).map(({ values }) => values[positionOf(column)]);
}

test('CounterTotals reads an answer with unknown columns and quoted texts', (t) => {
  const counters = newTotals();
  read(counters, 1, [
    line('FRONTEND', 7),
    line('10.0.0.1:80', 3, { check: 'L7STS', last: '"a, ""b""\nc"' }),
    line('BACKEND', 3),
  ]);
  t.deepEqual(totals(counters), [7, 3, 3]);
  const [, member] = seriesOf(counters);
  t.like(member, { kind: 'member', status: 'UP', checkStatus: 'L7STS', hasCheck: true, isHttp: false });
  t.is(member?.labels, 'namespace="default",service="web",port="80",protocol="TCP",address="10.0.0.1:80"');
});

test('parseStatRows() throws on any other text, and on a row that breaks off', (t) => {
  const reads = (answer: string) => () => parseStatRows(answer);
  for (const answer of [
    '',
    'Permission denied',
    '# pxname,svname,stot,',
    `${HEADER}\nNo such proxy.`,
    `${HEADER}\n${LISTENER},FRONT`,
  ])
    t.throws(reads(answer), { code: 'RUNTIME_REPLY' }, answer);
  t.notThrows(reads(HEADER), 'No such proxy has this number');
});

test('CounterTotals adds the fallback backend of a listener to its pool and its members', (t) => {
  const counters = newTotals();
  const spare = { name: `${LISTENER}:all-down` };
  const lines = (own: number, others: number): string[] => [
    line('10.0.0.1:80', own),
    line('BACKEND', own),
    line('10.0.0.1:80', others, spare),
    line('BACKEND', others, spare),
  ];
  read(counters, 1, lines(5, 0));
  read(counters, 1, lines(6, 3));
  t.deepEqual(totals(counters), [9, 9]);
  const [member] = seriesOf(counters);
  t.is(member?.values[positionOf('scur')], 2, 'What is open in both');
  read(counters, 2, lines(1, 1));
  t.deepEqual(totals(counters), [11, 11]);
  // The member is deleted, and begins at 0 when it is added again.
  read(counters, 2, [line('BACKEND', 2), line('BACKEND', 1, spare)]);
  read(counters, 2, lines(2, 1));
  t.deepEqual(totals(counters), [3, 12]);
});

test('Connections that are open in a replaced worker count as open', (t) => {
  const counters = newTotals();
  const open = (): number | undefined => seriesOf(counters)[0]?.values[positionOf('scur')];
  read(counters, 1, [line('BACKEND', 5)]);
  const one = open() ?? 0;
  t.true(one > 0);
  for (const round of [1, 2]) {
    read(counters, 2, [line('BACKEND', 1)]);
    readOld(counters, 1, 5 + round);
    t.is(open(), 2 * one, `round ${round}`);
  }
});

test('CounterTotals counts a down and its downtime once over a reload', (t) => {
  let now = 1_000;
  const counters = newTotals(() => now * 1_000);
  const states = (downs: number, downtime: number, status = 'DOWN'): string[] => [
    line('10.0.0.1:80', 0, { status, downs, downtime }),
    line('BACKEND', 0, { status, downs, downtime }),
  ];
  const all = (): unknown => [totals(counters, 'chkdown'), totals(counters, 'downtime')];
  read(counters, 1, states(1, 3_600));
  now += 15;
  // The old worker has handed its states over, and reports the members as down forever.
  readOld(counters, 1, 0, { status: 'DOWN', downs: 1, downtime: 3_700 });
  read(counters, 2, states(1, 3_615));
  t.deepEqual(all(), [
    [1, 1],
    [3_615, 3_615],
  ]);
  now += 15;
  read(counters, 2, states(2, 3_620));
  t.deepEqual(all(), [
    [2, 2],
    [3_620, 3_620],
  ]);
  // A member that was up goes down shortly before the next reload.
  now += 15;
  read(counters, 2, states(2, 3_625, 'UP'));
  now += 15;
  read(counters, 3, states(1, 4));
  t.deepEqual(all(), [
    [3, 3],
    [3_629, 3_629],
  ]);
});

test('The next agent continues the counts of a fallback backend', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'hg-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const lines = (own: number, others: number): string[] => [
    line('10.0.0.1:80', own),
    line('BACKEND', own),
    line('10.0.0.1:80', others, { name: `${LISTENER}:all-down` }),
    line('BACKEND', others, { name: `${LISTENER}:all-down` }),
  ];
  const before = newTotals();
  read(before, 1, lines(0, 1_000));
  const next = newTotals();
  await writeCounts(join(directory, 'counters'), before.counts(true));
  next.inherit(await readCounts(join(directory, 'counters')));
  read(next, 1, lines(2, 1_001));
  t.deepEqual(totals(next), [1_003, 1_003]);
});

test('CounterTotals has no series for proxies of other owners', (t) => {
  const counters = newTotals();
  read(counters, 1, [
    line('BACKEND', 1, { name: 'default:web:tcp:80:v4:rate' }),
    line('FRONTEND', 1, { name: 'stats' }),
  ]);
  t.deepEqual(totals(counters), []);
});

test('CounterTotals removes the series of a deleted member, which begins at 0 if it returns, unlike its pool', (t) => {
  const counters = newTotals();
  read(counters, 1, [line('10.0.0.1:80', 5), line('BACKEND', 5)]);
  read(counters, 1, [line('BACKEND', 6)]);
  t.deepEqual(totals(counters), [6]);
  read(counters, 1, [line('10.0.0.1:80', 1), line('BACKEND', 7)]);
  t.deepEqual(totals(counters).toSorted(), [1, 7]);
});

test('A member that returns does not count again what a replaced worker had counted of it', (t) => {
  const counters = newTotals();
  const old = (sessions: number): void =>
    parseStatRows([HEADER, line('10.0.0.1:80', sessions), line('BACKEND', sessions)].join('\n')).forEach(
      counters.old(parseInfo(info(1)), new Map()),
    );
  read(counters, 1, [line('10.0.0.1:80', 5), line('BACKEND', 5)]);
  read(counters, 2, [line('BACKEND', 0)]);
  old(6);
  t.deepEqual(totals(counters), [6]);
  read(counters, 2, [line('10.0.0.1:80', 1), line('BACKEND', 1)]);
  old(8);
  t.deepEqual(totals(counters).toSorted(), [3, 9]);
});

test('A listener that the kernel had meanwhile begins at 0, also in a worker that has counted it before', (t) => {
  const lines = (sessions: number, others: number): string[] => [
    line('FRONTEND', sessions),
    line('BACKEND', sessions),
    line('BACKEND', others, { name: `${LISTENER}:all-down` }),
  ];
  const by = (engine: string): ReadonlyMap<string, LoadBalancer> =>
    translated([
      service({ annotations: { 'headgate.io/engine': engine } }),
      slice({ endpoints: ['10.0.0.1'] }),
    ]).loadBalancers;
  const counters = newTotals();
  read(counters, 1, lines(5, 2), by('haproxy'));
  t.deepEqual(totals(counters), [5, 7]);
  read(counters, 1, lines(6, 3), by('kernel'));
  t.deepEqual(totals(counters), []);
  read(counters, 1, lines(8, 4), by('haproxy'));
  t.deepEqual(totals(counters), [2, 3]);
});

const SERVED = translated([service(), slice({ endpoints: ['10.0.0.1'] })]).loadBalancers;

test('A listener that a new worker does not have for a moment loses nothing of what replaced workers count', (t) => {
  const counters = newTotals();
  const lines = (sessions: number): string[] =>
    ['FRONTEND', '10.0.0.1:8080', 'BACKEND'].map((each) => line(each, sessions));
  const old = (sessions: number): void =>
    parseStatRows([HEADER, ...lines(sessions)].join('\n')).forEach(counters.old(parseInfo(info(1)), SERVED));
  read(counters, 1, lines(5), SERVED);
  t.deepEqual(totals(counters), [5, 5, 5]);
  read(counters, 2, [], SERVED);
  old(6);
  t.deepEqual(totals(counters), []);
  read(counters, 2, lines(1), SERVED);
  old(7);
  t.deepEqual(totals(counters), [8, 8, 8]);
});

test('A member that returns before its replaced worker was read again does not count twice either', (t) => {
  const counters = newTotals();
  const old = (sessions: number): void =>
    parseStatRows([HEADER, line('10.0.0.2:8080', sessions), line('BACKEND', sessions)].join('\n')).forEach(
      counters.old(parseInfo(info(1)), SERVED),
    );
  read(counters, 1, [line('10.0.0.2:8080', 5), line('BACKEND', 5)], SERVED);
  read(counters, 2, [line('BACKEND', 0)], SERVED);
  read(counters, 2, [line('10.0.0.2:8080', 1), line('BACKEND', 1)], SERVED);
  old(5);
  t.deepEqual(totals(counters).toSorted(), [1, 6]);
});

test('The pod label of a member follows the model', (t) => {
  const counters = newTotals();
  const lines = [line('FRONTEND', 1), line('10.0.0.1:8080', 1), line('BACKEND', 1)];
  const labels = (loadBalancers: ReadonlyMap<string, LoadBalancer>): string | undefined => {
    read(counters, 1, lines, loadBalancers);
    return seriesOf(counters).find(({ kind }) => kind === 'member')?.labels;
  };
  const webWith = (pod: string): ReadonlyMap<string, LoadBalancer> => {
    const endpoints = [endpoint('10.0.0.1', { target: `Pod/${pod}` })];
    const web = loadBalancerOf(translated([service(), slice({ endpoints })]));
    return new Map([[web.key, web]]);
  };
  t.notRegex(labels(new Map()) ?? '', /pod=/);
  t.regex(labels(webWith('web-1')) ?? '', /,pod="web-1",/);
  t.regex(labels(webWith('web-2')) ?? '', /,pod="web-2",/);
  t.notRegex(labels(new Map()) ?? '', /pod=/);
});

test('Totals are the sum of the counts of all workers in any order of readings and restarts', (t) => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('count' as const), more: fc.nat(50) }),
    fc.constant({ kind: 'reload' as const }),
    fc.constant({ kind: 'readOld' as const }),
    fc.constant({ kind: 'restartAgent' as const }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      let counters = newTotals();
      let [pid, count, old, oldCount, sum] = [1, 0, 0, 0, 0];
      let shown = 0;
      read(counters, pid, [line('BACKEND', 0)]);
      for (const each of steps) {
        if (each.kind === 'count') {
          count += each.more;
          oldCount += old === 0 ? 0 : 1;
          sum += each.more + (old === 0 ? 0 : 1);
        } else if (each.kind === 'reload') {
          // The old worker is read a last time.
          if (old !== 0) readOld(counters, old, oldCount);
          [old, oldCount, pid, count] = [pid, count, pid + 1, 0];
        } else if (each.kind === 'restartAgent') {
          const counts = kept(counters, false);
          counters = newTotals();
          counters.inherit(counts);
        }
        read(counters, pid, [line('BACKEND', count)]);
        if (each.kind === 'readOld' && old !== 0) readOld(counters, old, oldCount);
        const [total = -1] = totals(counters);
        t.true(total >= shown);
        shown = total;
      }
      if (old !== 0) readOld(counters, old, oldCount);
      t.deepEqual(totals(counters), [sum]);
    }),
    { numRuns: 200 },
  );
});

function readOld(
  counters: CounterTotals,
  pid: number,
  count: number,
  more: Parameters<typeof line>[2] = {},
): void {
  parseStatRows(`${HEADER}\n${line('BACKEND', count, more)}`).forEach(
    counters.old(parseInfo(info(pid)), new Map()),
  );
}

test('CounterTotals drops counts of the previous agent that may be less than those that were shown', (t) => {
  const before = newTotals();
  read(before, 1, [line('BACKEND', 9)]);
  for (const [isClean, pid, total] of [
    [false, 1, 10],
    [false, 2, 10],
    [true, 2, 19],
  ] as const) {
    const counters = newTotals();
    counters.inherit(kept(before, isClean));
    read(counters, pid, [line('BACKEND', 10)]);
    t.deepEqual(totals(counters), [total]);
  }
});

test('headgate_member_check_passed has a sample after the first check', (t) => {
  const passed = (check: string): number | undefined => {
    const counters = newTotals();
    read(counters, 1, [line('BACKEND', 0), line('10.0.0.1:80', 1, { check })]);
    const sample = {
      info: parseInfo(info(1)),
      process: counters.process,
      series: counters.series,
      oldWorkers: 0,
      oldConnections: 0,
      seconds: 0,
      age: () => 0,
    };
    const family = haproxyFamilies(sample).find(({ name }) => name === 'headgate_member_check_passed');
    const [part] = family?.parts ?? [];
    return part?.rows.map(part.value).at(-1);
  };
  t.deepEqual(['L4OK', 'L7OKC', '* L7OK', 'L7STS', 'L4TOUT'].map(passed), [1, 1, 1, 0, 0]);
  for (const check of ['INI', '* INI', 'UNK']) t.is(passed(check), Number.NaN, check);
});

test('Of the members of a kernel port only what checks have found is shown', (t) => {
  const port = { port: 53, protocol: 'UDP' as const };
  const desired = translated([
    service({ ports: [port], annotations: { 'headgate.io/health-monitor': 'tcp' } }),
    slice({ endpoints: ['10.0.0.1'], ports: [port] }),
  ]);
  const name = 'default:web:udp:53:v4';
  const counters = newTotals();
  const rows = [
    line('10.0.0.1:53', 0, { name, check: 'L4CON', status: 'DOWN', downs: 1 }),
    line('BACKEND', 0, { name }),
  ];
  read(counters, 1, rows, desired.loadBalancers);
  t.deepEqual(
    seriesOf(counters).map(({ kind }) => kind),
    ['member'],
  );
  const sample = {
    ...{ info: parseInfo(info(1)), process: [], series: counters.series },
    ...{ oldWorkers: 0, oldConnections: 0, seconds: 0, age: () => 0 },
  };
  const values = haproxyFamilies(sample)
    .filter(({ name: metric }) => metric.startsWith('headgate_member_'))
    .flatMap(({ name: metric, parts }) =>
      parts.flatMap(({ rows: series, value }) => series.map((row) => [metric, value(row)])),
    );
  t.deepEqual(values, [
    ['headgate_member_up', 0],
    ['headgate_member_draining', Number.NaN],
    ['headgate_member_weight', 16],
    ['headgate_member_check_passed', 0],
    ['headgate_member_check_duration_seconds', Number.NaN],
    ['headgate_member_check_failures_total', 0],
    ['headgate_member_downs_total', 1],
    ['headgate_member_downtime_seconds_total', 0],
  ]);
});
