import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import fc from 'fast-check';
import { type Column, positionOf } from '../../../../agent/haproxy/stats/columns.ts';
import { type Counts, readCounts, writeCounts } from '../../../../agent/haproxy/stats/counter-file.ts';
import { Ledger } from '../../../../agent/haproxy/stats/counter-totals.ts';
import { haproxyFamilies } from '../../../../agent/haproxy/stats/families.ts';
import { readProcessInfo } from '../../../../agent/haproxy/stats/process-info.ts';
import type { Series } from '../../../../agent/haproxy/stats/series.ts';
import type { Block } from '../../../../agent/haproxy/stats/series-blocks.ts';
import { StatAnswer } from '../../../../agent/haproxy/stats/stat-reader.ts';
import { type StatRow, StatRows } from '../../../../agent/haproxy/stats/stat-rows.ts';
import type { Sample } from '../../../../agent/haproxy/stats/statistics.ts';
import type { LoadBalancer } from '../../../../agent/model/load-balancer.ts';
import { endpoint, service, slice } from '../../../support/values/build.ts';
import { loadBalancerOf, translated } from '../../../support/values/translated.ts';

const HEADER =
  '# pxname,svname,qcur,scur,slim,stot,bin,bout,ereq,econ,eresp,wretr,wredis,status,weight,act,chkfail,chkdown,downtime,type,check_status,check_duration,hrsp_1xx,hrsp_2xx,hrsp_3xx,hrsp_4xx,hrsp_5xx,hrsp_other,req_tot,cli_abrt,srv_abrt,qtime,ctime,rtime,ttime,last_chk,mode,conn_tot,dcon,dses,new,';
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
  return `${name},${server},${waiting},1,,${sessions},10,20,,0,0,0,0,${status},16,1,,${downs},${downtime},${type},${check},,,,,,,,,${sessions},0,1,2,0,4,${last},${mode},,,,x,`;
}

function info(pid: number, start = 1): string {
  return `Version: 2.6.12\nPid: ${pid}\nStart_time_sec: ${start}\nStopping: 0\nCumConns: 5`;
}

function read(ledger: Ledger, pid: number, lines: readonly string[], size = 1_000_000): void {
  let reading: ReturnType<Ledger['current']> | undefined;
  const answer = new StatAnswer({
    onInfo: (text) => {
      reading = ledger.current(readProcessInfo(text), new Map());
    },
    onRow: (row) => reading?.row(row),
  });
  const bytes = Buffer.from(`${info(pid)}\n\n${[HEADER, ...lines].join('\n')}\n\n`);
  for (let at = 0; at < bytes.length; at += size) answer.feed(bytes.subarray(at, at + size));
  answer.end();
  reading?.end();
}

/** What the next agent finds. */
function kept(ledger: Ledger, isClean: boolean): Counts {
  const counts = ledger.counts(isClean);
  return structuredClone({ ...counts, series: new Map(counts.series as Iterable<[string, number[]]>) });
}

/** Listeners, then members, then pools. */
function seriesOf(ledger: Ledger): readonly Series[] {
  return (['listener', 'member', 'pool'] as const).flatMap((kind) =>
    ledger.blocks(kind).flatMap(({ rows }) => rows),
  );
}

function totals(
  ledger: Ledger,
  column: 'stot' | 'bin' | 'chkdown' | 'downtime' = 'stot',
): readonly (number | undefined)[] {
  return seriesOf(ledger).map(({ values }) => values[positionOf(column)]);
}

test('An answer may be cut anywhere, has columns that are new, and texts in quotes', (t) => {
  const lines = [
    line('FRONTEND', 7),
    line('10.0.0.1:80', 3, { check: 'L7STS', last: '"a, ""b""\nc"' }),
    line('BACKEND', 3),
  ];
  for (const size of [1, 2, 3, 7, 100]) {
    const ledger = new Ledger();
    read(ledger, 1, lines, size);
    t.deepEqual(totals(ledger), [7, 3, 3]);
    const [, member] = seriesOf(ledger);
    t.like(member, { kind: 'member', status: 'UP', checkStatus: 'L7STS', hasCheck: true, isHttp: false });
    t.is(member?.labels, 'namespace="default",service="web",port="80",protocol="TCP",address="10.0.0.1:80"');
  }
});

test('What is no statistics, or breaks off, is an error', (t) => {
  const rows = (): StatRows => new StatRows((_: StatRow) => undefined);
  t.throws(() => rows().feed(Buffer.from('Permission denied\n')), { code: 'RUNTIME_REPLY' });
  t.throws(() => rows().feed(Buffer.from('# pxname,svname,stot,\n')), { code: 'RUNTIME_REPLY' });
  t.throws(() => rows().end(), { code: 'RUNTIME_REPLY' });
  t.throws(() => rows().feed(Buffer.from(`${HEADER}\n\nNo such proxy.\n\n`)), { code: 'RUNTIME_REPLY' });
  const half = rows();
  half.feed(Buffer.from(`${HEADER}\n${LISTENER},FRONT`));
  t.throws(() => half.end(), { code: 'RUNTIME_REPLY' });
});

test('What the second backend of a listener has served is counted for its pool and its members', (t) => {
  const ledger = new Ledger();
  const spare = { name: `${LISTENER}:all-down` };
  const lines = (own: number, others: number): string[] => [
    line('10.0.0.1:80', own),
    line('BACKEND', own),
    line('10.0.0.1:80', others, spare),
    line('BACKEND', others, spare),
  ];
  read(ledger, 1, lines(5, 0));
  read(ledger, 1, lines(6, 3));
  t.deepEqual(totals(ledger), [9, 9]);
  const [member] = seriesOf(ledger);
  t.is(member?.values[positionOf('scur')], 2, 'What is open in both');
  read(ledger, 2, lines(1, 1));
  t.deepEqual(totals(ledger), [11, 11]);
  // The member goes, and comes again from 0.
  read(ledger, 2, [line('BACKEND', 2), line('BACKEND', 1, spare)]);
  read(ledger, 2, lines(2, 1));
  t.deepEqual(totals(ledger), [3, 12]);
});

test('What was down before a reload has gone down once, and not for longer than it was', (t) => {
  let now = 1_000;
  const ledger = new Ledger(() => now);
  const told = (downs: number, downtime: number, status = 'DOWN'): string[] => [
    line('10.0.0.1:80', 0, { status, downs, downtime }),
    line('BACKEND', 0, { status, downs, downtime }),
  ];
  const all = (): unknown => [totals(ledger, 'chkdown'), totals(ledger, 'downtime')];
  read(ledger, 1, told(1, 3_600));
  now += 15;
  // The new worker has been told by the old one, which says that they are down for ever.
  readOld(ledger, 1, 0, { status: 'DOWN', downs: 1, downtime: 3_700 });
  read(ledger, 2, told(1, 3_615));
  t.deepEqual(all(), [
    [1, 1],
    [3_615, 3_615],
  ]);
  now += 15;
  read(ledger, 2, told(2, 3_620));
  t.deepEqual(all(), [
    [2, 2],
    [3_620, 3_620],
  ]);
  // One that was up goes down shortly before the next reload.
  now += 15;
  read(ledger, 2, told(2, 3_625, 'UP'));
  now += 15;
  read(ledger, 3, told(1, 4));
  t.deepEqual(all(), [
    [3, 3],
    [3_629, 3_629],
  ]);
});

test('Pools that are put off are as they were, for so many seconds, and their downtime is counted from then on', (t) => {
  let now = 1_000;
  const ledger = new Ledger(() => now);
  const told = (downtime: number): string[] => [
    line('FRONTEND', 5),
    line('BACKEND', 5, { status: 'DOWN', downs: 1, downtime }),
  ];
  read(ledger, 1, told(100));
  t.is(ledger.age, 0);
  for (const passed of [3, 6]) {
    now = 1_000 + passed;
    const reading = ledger.current(readProcessInfo(info(1)), new Map());
    const rows = new StatRows((row) => reading.row(row));
    rows.feed(Buffer.from(`${HEADER}\n${line('FRONTEND', 5 + passed)}\n\n`));
    rows.end();
    reading.end({ unread: new Set([LISTENER]), isPutOff: true });
    t.is(ledger.age, passed);
    t.deepEqual(totals(ledger), [5 + passed, 5]);
  }
  now = 1_010;
  read(ledger, 2, told(110));
  t.is(ledger.age, 0);
  t.deepEqual([totals(ledger, 'chkdown').at(-1), totals(ledger, 'downtime').at(-1)], [1, 110]);
});

test('What the sockets of a listener have counted goes on from its row, which stands where they have less', (t) => {
  const ledger = new Ledger();
  const counted = (pid: number, open: number, sessions: number, bytes: number): void => {
    const reading = ledger.current(readProcessInfo(info(pid)), new Map());
    // scur, stot, bin, bout, conn_tot, dcon, dses.
    reading.counted(LISTENER, [open, sessions, bytes, 20, 8, 2, Number.NaN]);
    reading.counted('default:gone:tcp:80:v4', [1, 1, 1, 1, 1, 1, 1]);
    reading.end({ unread: new Set([LISTENER]), isPutOff: true });
  };
  const listener = (...columns: readonly Column[]): readonly (number | undefined)[] =>
    columns.map((column) => ledger.blocks('listener')[0]?.rows[0]?.values[positionOf(column)]);
  const rows = (sessions: number): readonly string[] => [
    line('FRONTEND', sessions),
    line('BACKEND', sessions),
  ];
  read(ledger, 1, rows(5));
  counted(1, 3, 7, 10);
  const all = ['scur', 'stot', 'bin', 'bout', 'conn_tot', 'dcon', 'dses', 'cli_abrt', 'ereq'] as const;
  t.deepEqual(listener(...all), [3, 7, 10, 20, 8, 2, 0, 5, 0]);
  t.is(ledger.blocks('listener')[0]?.rows[0]?.status, 'UP');
  counted(1, 0, Number.NaN, 9);
  t.deepEqual(listener('scur', 'stot', 'bin'), [0, 7, 10], 'Not told, and less');
  read(ledger, 1, rows(9));
  t.deepEqual(totals(ledger), [9, 9], 'Nothing is counted twice');
  read(ledger, 2, rows(1));
  counted(2, 1, 4, 10);
  t.deepEqual(listener('stot', 'bin', 'conn_tot'), [13, 20, 16], 'After those of the worker before');
});

test('The next agent knows what was counted in the second backend', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'hg-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const lines = (own: number, others: number): string[] => [
    line('10.0.0.1:80', own),
    line('BACKEND', own),
    line('10.0.0.1:80', others, { name: `${LISTENER}:all-down` }),
    line('BACKEND', others, { name: `${LISTENER}:all-down` }),
  ];
  const before = new Ledger();
  read(before, 1, lines(0, 1_000));
  const next = new Ledger();
  await writeCounts(join(directory, 'counters'), before.counts(true));
  next.inherit(await readCounts(join(directory, 'counters')));
  read(next, 1, lines(2, 1_001));
  t.deepEqual(totals(next), [1_003, 1_003]);
});

test('What is not of ours has no series', (t) => {
  const ledger = new Ledger();
  read(ledger, 1, [
    line('BACKEND', 1, { name: 'default:web:tcp:80:v4:rate' }),
    line('FRONTEND', 1, { name: 'stats' }),
  ]);
  t.deepEqual(totals(ledger), []);
});

test('A member that is gone has no series, and one that comes back begins at 0 while the pool goes on', (t) => {
  const ledger = new Ledger();
  read(ledger, 1, [line('10.0.0.1:80', 5), line('BACKEND', 5)]);
  read(ledger, 1, [line('BACKEND', 6)]);
  t.deepEqual(totals(ledger), [6]);
  read(ledger, 1, [line('10.0.0.1:80', 1), line('BACKEND', 7)]);
  t.deepEqual(totals(ledger).toSorted(), [1, 7]);
});

test('Who is behind a member follows the model, in which a load balancer that changes is another value', (t) => {
  const ledger = new Ledger();
  const lines = [line('FRONTEND', 1), line('10.0.0.1:8080', 1), line('BACKEND', 1)];
  const labels = (loadBalancers: ReadonlyMap<string, LoadBalancer>): string | undefined => {
    const reading = ledger.current(readProcessInfo(info(1)), loadBalancers);
    const rows = new StatRows((row) => reading.row(row));
    rows.feed(Buffer.from(`${[HEADER, ...lines].join('\n')}\n\n`));
    reading.end();
    return seriesOf(ledger).find(({ kind }) => kind === 'member')?.labels;
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

test('What is left out because its pool has not changed is as it was, and what is gone with its pool is gone', (t) => {
  const ledger = new Ledger();
  const other = { name: 'default:other:tcp:80:v4' };
  const pools: string[] = [];
  const readSome = (lines: readonly string[], unread: readonly string[]): void => {
    pools.length = 0;
    const reading = ledger.current(readProcessInfo(info(1)), new Map(), ({ listener }, differs) => {
      if (differs) pools.push(listener);
    });
    const rows = new StatRows((row) => reading.row(row));
    rows.feed(Buffer.from(`${[HEADER, ...lines].join('\n')}\n\n`));
    rows.end();
    reading.end({ unread: new Set(unread), isPutOff: false });
  };
  const all = [line('BACKEND', 5), line('BACKEND', 3, other)];
  readSome([...all, HEADER, line('10.0.0.1:80', 5), line('10.0.0.2:80', 3, other)], []);
  t.deepEqual(pools, [LISTENER, other.name]);
  t.deepEqual(totals(ledger), [5, 3, 5, 3]);
  readSome(all, [LISTENER, other.name]);
  t.deepEqual(pools, []);
  t.deepEqual(totals(ledger), [5, 3, 5, 3]);
  // The member that is asked for and not there any more is gone, the one that is not asked for stays.
  readSome([line('BACKEND', 6), line('BACKEND', 3, other), HEADER], [other.name]);
  t.deepEqual(pools, [LISTENER]);
  t.deepEqual(totals(ledger), [3, 6, 3]);
  readSome([line('BACKEND', 6)], [LISTENER]);
  t.deepEqual(totals(ledger), [6]);
  readSome([], [LISTENER]);
  t.deepEqual(totals(ledger), [6], 'Nor is the pool itself asked for');
});

test('Totals are the sum of what all workers have counted, whatever the order of readings and restarts', (t) => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('count' as const), more: fc.nat(50) }),
    fc.constant({ kind: 'reload' as const }),
    fc.constant({ kind: 'readOld' as const }),
    fc.constant({ kind: 'restartAgent' as const }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      let ledger = new Ledger();
      let [pid, count, old, oldCount, sum] = [1, 0, 0, 0, 0];
      let shown = 0;
      read(ledger, pid, [line('BACKEND', 0)]);
      for (const each of steps) {
        if (each.kind === 'count') {
          count += each.more;
          oldCount += old === 0 ? 0 : 1;
          sum += each.more + (old === 0 ? 0 : 1);
        } else if (each.kind === 'reload') {
          // What the worker before the last had counted is read before it is forgotten.
          if (old !== 0) readOld(ledger, old, oldCount);
          [old, oldCount, pid, count] = [pid, count, pid + 1, 0];
        } else if (each.kind === 'restartAgent') {
          const counts = kept(ledger, false);
          ledger = new Ledger();
          ledger.inherit(counts);
        }
        read(ledger, pid, [line('BACKEND', count)]);
        if (each.kind === 'readOld' && old !== 0) readOld(ledger, old, oldCount);
        const [total = -1] = totals(ledger);
        t.true(total >= shown);
        shown = total;
      }
      if (old !== 0) readOld(ledger, old, oldCount);
      t.deepEqual(totals(ledger), [sum]);
    }),
    { numRuns: 200 },
  );
});

test('What is as of the same reading, for the same rows, says the same, whatever is read in between', (t) => {
  const spare = { name: `${LISTENER}:all-down` };
  const step = fc.record({
    sessions: fc.array(fc.nat(2), { minLength: 3, maxLength: 3 }),
    spare: fc.nat(2),
    check: fc.constantFrom('', 'L4OK', 'L7STS'),
    mode: fc.constantFrom('tcp', 'http'),
    waiting: fc.nat(1),
    isOld: fc.boolean(),
    breaksOff: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
      const ledger = new Ledger();
      const said = new Map<unknown, Map<string, string>>();
      for (const { sessions, spare: others, check, mode, waiting, isOld, breaksOff } of steps) {
        const [first = 0, second = 0, third = 0] = sessions;
        const lines = [
          line('FRONTEND', first, { mode }),
          line('10.0.0.1:80', second, { check, mode, waiting }),
          line('BACKEND', third, { mode, waiting }),
          ...(others > 0 ? [line('10.0.0.1:80', others, spare)] : []),
        ];
        if (isOld) readOld(ledger, 9, third);
        else if (breaksOff) readSome(ledger, lines.slice(0, 2));
        else {
          read(ledger, 1, lines);
          for (const { name, parts } of haproxyFamilies(sampleOf(ledger)))
            for (const { labels, rows, asOf, value } of parts) {
              if (asOf === undefined) continue;
              const text = String(rows.map(value));
              const known = said.get(rows) ?? new Map<string, string>();
              const key = `${name} ${labels} ${asOf}`;
              said.set(rows, known.set(key, known.get(key) ?? text));
              t.is(known.get(key), text, key);
            }
        }
      }
    }),
    { numRuns: 200 },
  );
});

function sampleOf(ledger: Ledger): Sample {
  const [listener, pool, member] = (['listener', 'pool', 'member'] as const).map((kind) =>
    ledger.blocks(kind),
  ) as [Block[], Block[], Block[]];
  const blocks = { listener, pool, member };
  return {
    info: readProcessInfo(info(1)),
    process: ledger.process,
    blocks,
    oldWorkers: 0,
    seconds: 0,
    age: 0,
  };
}

test('A column that changes touches nothing that does not depend on it', (t) => {
  const ledger = new Ledger();
  const asOf = (name: string): number | undefined =>
    haproxyFamilies(sampleOf(ledger)).find((family) => family.name === name)?.parts[0]?.asOf;
  for (const sessions of [1, 2, 3]) read(ledger, 1, [line('BACKEND', 0), line('10.0.0.1:80', sessions)]);
  t.is(asOf('headgate_member_sessions_total'), 3);
  t.is(asOf('headgate_member_connect_time_average_seconds'), 3, 'There is none before the first session');
  t.is(asOf('headgate_member_weight'), 0, 'Not since there are these rows');
  t.is(asOf('headgate_member_up'), 0);
});

/** A reading of the worker 1 that does not come to its end. */
function readSome(ledger: Ledger, lines: readonly string[]): void {
  const reading = ledger.current(readProcessInfo(info(1)), new Map());
  const rows = new StatRows((row) => reading.row(row));
  rows.feed(Buffer.from(`${[HEADER, ...lines].join('\n')}\n`));
}

function readOld(ledger: Ledger, pid: number, count: number, more: Parameters<typeof line>[2] = {}): void {
  const rows = new StatRows(ledger.old(readProcessInfo(info(pid))));
  rows.feed(Buffer.from(`${HEADER}\n${line('BACKEND', count, more)}\n`));
}

test('Counts of an agent before that may be less than what was shown are dropped as a whole', (t) => {
  const before = new Ledger();
  read(before, 1, [line('BACKEND', 9)]);
  for (const [isClean, pid, total] of [
    [false, 1, 10],
    [false, 2, 10],
    [true, 2, 19],
  ] as const) {
    const ledger = new Ledger();
    ledger.inherit(kept(before, isClean));
    read(ledger, pid, [line('BACKEND', 10)]);
    t.deepEqual(totals(ledger), [total]);
  }
});

test('Whether the last check was passed is told from the first one on', (t) => {
  const passed = (check: string): number | undefined => {
    const ledger = new Ledger();
    read(ledger, 1, [line('BACKEND', 0), line('10.0.0.1:80', 1, { check })]);
    const family = haproxyFamilies(sampleOf(ledger)).find(
      ({ name }) => name === 'headgate_member_check_passed',
    );
    const [part] = family?.parts ?? [];
    return part?.rows.map(part.value).at(-1);
  };
  t.deepEqual(['L4OK', 'L7OKC', '* L7OK', 'L7STS', 'L4TOUT'].map(passed), [1, 1, 1, 0, 0]);
  for (const check of ['INI', '* INI', 'UNK']) t.is(passed(check), Number.NaN, check);
});
