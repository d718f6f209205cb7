import test from 'ava';
import fc from 'fast-check';
import { HeadgateError } from '../../../../agent/errors.ts';
import {
  keptRows,
  parseAcl,
  parseAclList,
  parseInfo,
  parseServersState,
  parseSessions,
  parseShowProc,
} from '../../../../agent/haproxy/socket/readings.ts';

// Texts of 2.6.12, 3.2.26 and 3.4.7, some shortened.
const HEADER =
  '# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight srv_time_since_last_change srv_check_status srv_check_result srv_check_health srv_check_state srv_agent_state bk_f_forced_id srv_f_forced_id srv_fqdn srv_port srvrecord srv_use_ssl srv_check_port srv_check_addr srv_agent_addr srv_agent_port';
const STATE = `1
${HEADER}
3 be:one 77 10.0.0.1:80 10.0.0.1 2 0 100 100 0 1 0 2 0 0 0 1 - 80 - 0 0 - - 0
3 be:one 2 2001:db8::1:80 2001:db8::1 0 5 50 50 0 1 0 0 8 0 0 0 - 80 - 0 0 - - 0
3 be:one 5 10.0.0.2:81 10.0.0.2 0 1 20 10 0 1 0 0 0 0 0 1 - 81 - 0 0 - - 0
3 be:one 6 was-disabled 10.0.0.3 2 4 50 50 0 1 0 0 8 0 0 0 - 80 - 0 0 - - 0
3 be:one 7 drained 10.0.0.4 2 8 20 10 0 1 0 0 0 0 0 1 - 81 - 0 0 - - 0
3 be:one 1 checked 2001:db8::2 2 0 10 10 0 6 3 4 6 0 0 0 - 81 - 0 8080 - - 8080
3 be:one 8 unresolved - 0 32 1 1 0 1 0 0 0 0 0 0 db.example.com 81 - 0 0 - - 0
5 src 3 c 10.0.0.1 0 0 1 1 0 8 2 0 2 0 0 0 - 83 - 0 0 - - 0
`;

test('parseServersState() reads every server of every backend', (t) => {
  t.deepEqual([...parseServersState(STATE)], [
    {
      backend: 'be:one',
      server: '10.0.0.1:80',
      id: 77,
      address: '10.0.0.1',
      port: 80,
      weight: 100,
      state: 'ready',
      operational: 'up',
      check: 'none',
      checkStatus: 1,
    },
    {
      backend: 'be:one',
      server: '2001:db8::1:80',
      id: 2,
      address: '2001:db8::1',
      port: 80,
      weight: 50,
      state: 'maint',
      operational: 'down',
      check: 'none',
      checkStatus: 1,
    },
    {
      backend: 'be:one',
      server: '10.0.0.2:81',
      id: 5,
      address: '10.0.0.2',
      port: 81,
      weight: 20,
      state: 'maint',
      operational: 'down',
      check: 'none',
      checkStatus: 1,
    },
    {
      backend: 'be:one',
      server: 'was-disabled',
      id: 6,
      address: '10.0.0.3',
      port: 80,
      weight: 50,
      state: 'ready',
      operational: 'up',
      check: 'none',
      checkStatus: 1,
    },
    {
      backend: 'be:one',
      server: 'drained',
      id: 7,
      address: '10.0.0.4',
      port: 81,
      weight: 20,
      state: 'drain',
      operational: 'up',
      check: 'none',
      checkStatus: 1,
    },
    {
      backend: 'be:one',
      server: 'checked',
      id: 1,
      address: '2001:db8::2',
      port: 81,
      weight: 10,
      state: 'ready',
      operational: 'up',
      check: 'on',
      checkStatus: 6,
    },
    {
      backend: 'be:one',
      server: 'unresolved',
      id: 8,
      address: '',
      port: 81,
      weight: 1,
      state: 'maint',
      operational: 'down',
      check: 'none',
      checkStatus: 1,
    },
    {
      backend: 'src',
      server: 'c',
      id: 3,
      address: '10.0.0.1',
      port: 83,
      weight: 1,
      state: 'ready',
      operational: 'down',
      check: 'off',
      checkStatus: 8,
    },
  ] as never);
});

test('parseServersState() finds columns by their names', (t) => {
  const reversed = STATE.split('\n').map((line) => {
    const isHeader = line.startsWith('# ');
    const words = line.replace(/^# /, '').split(' ').reverse().join(' ');
    return isHeader ? `# ${words}` : words;
  });
  t.deepEqual([...parseServersState(reversed.join('\n'))], [...parseServersState(STATE)]);
});

test('parseServersState() of a backend without servers is empty', (t) => {
  t.deepEqual([...parseServersState(`1\n${HEADER}\n`)], []);
});

const unreadable: readonly (readonly [string, RegExp])[] = [
  ["Can't find backend.\n", /Cannot read HAProxy's servers state: "Can't find backend\."/],
  ['', /servers state/],
  [`2\n${HEADER}\n`, /servers state/],
  [`1\n${HEADER.replace('srv_uweight', 'weight')}\n`, /no column "srv_uweight"/],
  [`1\n${HEADER}\n3 be:one 77\n`, /too few fields/],
  [`1\n${HEADER}\n${'x '.repeat(25)}\n`, /"x" is not a number/],
];
for (const [text, message] of unreadable) {
  test(`parseServersState() throws on ${JSON.stringify(text.slice(0, 20))}: ${message.source}`, (t) => {
    t.throws(() => [...parseServersState(text)], { code: 'RUNTIME_REPLY', message });
  });
}

test('parseServersState() reads 50,000 servers in steps that are short', (t) => {
  const row =
    '3 default:web:tcp:80:v4 77 10.0.0.1:80 10.0.0.1 2 0 100 100 0 1 0 2 0 0 0 1 - 80 - 0 0 - - 0\n';
  const text = `1\n${HEADER}\n${row.repeat(50_000)}`;
  let rows = 0;
  const steps: number[] = [];
  let begun = performance.now();
  for (const _ of parseServersState(text)) {
    if (++rows % 1_000 === 0) {
      steps.push(performance.now() - begun);
      begun = performance.now();
    }
  }
  t.is(rows, 50_000);
  const median = steps.sort((a, b) => a - b)[25] ?? Infinity;
  t.true(median < 5, `1,000 rows take ${median} ms`);
});

test('parseInfo() reads who answers', (t) => {
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
# programs
9000            dataplane       0               0d00h00m02s     -              
`;
  t.deepEqual(parseShowProc(text), {
    master: { pid: 8073, reloads: 1, failed: 0 },
    workers: [{ pid: 8080, reloads: 0 }],
    oldWorkers: [
      { pid: 8075, reloads: 1 },
      { pid: 8076, reloads: 2 },
    ],
  });
});

test('parseShowProc() reads the form of 3.2 after a failed reload: the one that serves is an old worker', (t) => {
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

test('No text whatever makes a parser throw anything but an error of ours', (t) => {
  const lines = fc.oneof(
    fc.string(),
    fc.constantFrom(
      ...STATE.split('\n'),
      'Pid: 1',
      'Version: 2.6.1',
      'Stopping: x',
      '0x1 a',
      '1 master 1 0d00h00m00s',
    ),
  );
  const parsers = [(text: string) => [...parseServersState(text)], parseInfo, parseAcl, parseShowProc];
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

test('keptRows() gives the rows of servers that checks have found down or up, as they are, but for those somebody has changed', (t) => {
  const row = (name: string, operational: number, admin: number, address = '10.0.0.1', weight = 16): string =>
    `3 web 7 ${name} ${address} ${operational} ${admin} ${weight} 16 2 8 2 0 6 0 0 1 - 80 - 0 0 - - 0`;
  const [down, drained] = [row('10.0.0.1:80', 0, 0), row('2001:db8::1:80', 0, 8, '2001:db8::1')];
  const [up, out] = [row('10.0.0.1:80', 2, 0), row('10.0.0.1:80', 0, 1)];
  const moved = row('10.0.0.9:80', 0, 0);
  const reweighted = row('10.0.0.1:80', 2, 0, '10.0.0.1', 8);
  const text = ['1', HEADER, down, up, out, moved, reweighted, drained, ''].join('\n');
  t.deepEqual(keptRows(text), { header: HEADER, rows: [down, up, drained] });
  t.deepEqual(keptRows("Can't find backend.\n"), { header: '', rows: [] });
  t.throws(() => keptRows('2\n'), { message: /Cannot read HAProxy's servers state/ });
});

test('parseAclList() says where each ACL stands', (t) => {
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

test('parseSessions() gives the sessions that have a server', (t) => {
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
