import test from 'ava';
import fc from 'fast-check';
import { HeadgateError } from '../../../../agent/base/errors.ts';
import {
  loadOf,
  parseAcl,
  parseAclList,
  parseInfo,
  parseSessions,
  parseShowProc,
} from '../../../../agent/haproxy/socket/readings.ts';

// Texts of 2.6.12 and 3.2.26, some shortened.
test('parseInfo() reads the worker, its version and its description', (t) => {
  const text = `Name: HAProxy
Version: 2.6.12-1+deb12u4
Release_date: 2026/10/17
Pid: 6373
Uptime_sec: 0
node: vm
description: Headgate: generation 7 > prompt
Stopping: 1
Unstoppable Jobs: 1
Tainted: 0
`;
  const info = parseInfo(text);
  t.like(info, {
    pid: 6373,
    stopping: true,
    description: 'Headgate: generation 7 > prompt',
  });
  t.like(info.version, { major: 2, minor: 6, patch: 12 });
  t.is(parseInfo(text.replace(/description.*\n/, '')).description, '');
  t.throws(() => parseInfo(text.replace('Pid', 'Bid')), { code: 'RUNTIME_REPLY', message: /no "Pid"/ });
  t.throws(() => parseInfo('Permission denied\n'), { code: 'RUNTIME_REPLY', message: /Permission denied/ });
});

test('loadOf() returns 0 for what HAProxy does not report', (t) => {
  const load = (text: string) => loadOf(parseInfo(`Version: 2.6.12\nPid: 1\nStopping: 0\n${text}`));
  const text = 'CurrConns: 5\nCumConns: 9\nConnRate: 12\nMaxConnRate: 70\nIdle_pct: 96\n';
  t.deepEqual(load(text), { busy: 4 });
  t.deepEqual(load(''), { busy: 0 });
});

test('parseAcl() reads patterns', (t) => {
  t.deepEqual(parseAcl('0x5617e7074d20 10.0.0.0/8\n0x5617e7074dc0 2001:db8::/32\n'), [
    '10.0.0.0/8',
    '2001:db8::/32',
  ]);
  t.deepEqual(parseAcl(''), []);
  t.throws(() => parseAcl('Unknown ACL identifier. Please use #<id> or <file>.\n'), {
    code: 'RUNTIME_REPLY',
    message: /Unknown ACL identifier/,
  });
});

test('parseShowProc() reads the form of 2.6', (t) => {
  const text = `#<PID>          <type>          <reloads>       <uptime>        <version>      
8073            master          1 [failed: 0]   1d02h03m04s     2.6.12-1+deb12u4
# workers
8080            worker          0               0d00h00m01s     2.6.12-1+deb12u4
# old workers
8075            worker          1               0d00h00m02s     2.6.12-1+deb12u4
8076            worker          2               0d00h00m-3s     2.6.12-1+deb12u4
8077            worker          3               -1d-2h-3m-4s    2.6.12-1+deb12u4
# programs
9000            dataplane       0               0d00h00m02s     -              
`;
  t.deepEqual(parseShowProc(text), {
    master: { pid: 8073, reloads: 1, failed: 0 },
    workers: [{ pid: 8080, reloads: 0 }],
    oldWorkers: [
      { pid: 8075, reloads: 1 },
      { pid: 8076, reloads: 2 },
      { pid: 8077, reloads: 3 },
    ],
  });
});

test('parseShowProc() reads the form of 3.2 after a failed reload: the worker that serves is an old worker', (t) => {
  const text = `#<PID>          <type>          <reloads>       <uptime>        <version>      
17028           master          1 [failed: 1]   0d00h00m00s     3.2.26-1       
# workers
# old workers
17030           worker          1               0d00h00m00s     3.2.26-1       
`;
  const { master, workers, oldWorkers } = parseShowProc(text);
  t.like(master, { pid: 17_028, failed: 1 });
  t.deepEqual([workers.length, oldWorkers[0]?.pid], [0, 17_030]);
  t.throws(() => parseShowProc('# workers\n'), { code: 'RUNTIME_REPLY', message: /no master/ });
  t.throws(() => parseShowProc('Unknown command\n'), { code: 'RUNTIME_REPLY', message: /Unknown command/ });
});

test('parseAclList() returns the line of each ACL', (t) => {
  const text = `# id (file) description
0 () acl 'var' file 'httpclient' line 0. curr_ver=0 next_ver=0 entry_cnt=1
200000 () acl 'src' file '/var/lib/line 7/haproxy.cfg' line 10. curr_ver=0 next_ver=0 entry_cnt=2
300000 () acl 'src' file '/var/lib/line 7/haproxy.cfg' line 11

`;
  t.deepEqual(
    [...parseAclList(text)],
    [
      { id: 0, line: 0 },
      { id: 200_000, line: 10 },
      { id: 300_000, line: 11 },
    ],
  );
  t.throws(() => [...parseAclList('Unknown command')], { message: /Cannot read HAProxy's ACLs/ });
});

test('parseSessions() returns the sessions that have a server', (t) => {
  const row = (pointer: string, backend: string, server: string): string =>
    `${pointer}: proto=tcpv4 src=10.0.0.1:40000 fe=default:web:tcp:80:v4 be=${backend} srv=${server} ts=00 epoch=0 age=1s calls=3 rate=0 cpu=0 lat=0 rq[f=848000h,i=0,an=00h,rx=48s,wx=,ax=] exp=48s rc=0 c_exp=`;
  const text = [
    row('0x56251b20ef40', 'default:web:tcp:80:v4', '10.0.0.1:8080'),
    row('0x7f3d0c0269a0', '<NONE>', '<none>'),
    row('0x7f3d0c0269b0', 'default:api:tcp:80:v6', '2001:db8::1:8080'),
    '',
  ].join('\n');
  t.deepEqual(
    [...parseSessions(text)],
    [
      { pointer: '0x56251b20ef40', backend: 'default:web:tcp:80:v4', server: '10.0.0.1:8080' },
      { pointer: '0x7f3d0c0269b0', backend: 'default:api:tcp:80:v6', server: '2001:db8::1:8080' },
    ],
  );
  t.deepEqual([...parseSessions("Can't find the target PID matching the prefix '@!31811'")], []);
});

test('Parsers throw nothing but a HeadgateError on any text', (t) => {
  const lines = fc.oneof(
    fc.string(),
    fc.constantFrom(
      'Pid: 1',
      'Version: 2.6.1',
      'Stopping: x',
      '0x1 a',
      '1 master 1 0d00h00m00s',
      '# id (file) description',
    ),
  );
  const parseList = (text: string) => [...parseAclList(text)];
  const parsers = [parseInfo, parseAcl, parseList, parseShowProc];
  fc.assert(
    fc.property(fc.array(lines), fc.constantFrom(...parsers), (words, parse) => {
      try {
        parse(words.join('\n'));
        return true;
      } catch (error) {
        return error instanceof HeadgateError && error.message.startsWith('Cannot ');
      }
    }),
    { numRuns: 1_000 },
  );
  t.pass();
});
