import test from 'ava';
import fc from 'fast-check';
import { HeadgateError } from '../../../../agent/base/errors.ts';
import { isAtHome, keptRows, parseServersState } from '../../../../agent/haproxy/socket/servers-state.ts';

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
      initialWeight: 100,
      state: 'ready',
      hasInitialState: true,
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
      initialWeight: 50,
      state: 'maint',
      hasInitialState: false,
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
      initialWeight: 10,
      state: 'maint',
      hasInitialState: false,
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
      initialWeight: 50,
      state: 'ready',
      hasInitialState: false,
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
      initialWeight: 10,
      state: 'drain',
      hasInitialState: false,
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
      initialWeight: 10,
      state: 'ready',
      hasInitialState: true,
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
      initialWeight: 1,
      state: 'maint',
      hasInitialState: false,
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
      initialWeight: 1,
      state: 'ready',
      hasInitialState: true,
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

test('parseServersState() returns no rows for a backend without servers, and for an unknown backend', (t) => {
  t.deepEqual([...parseServersState(`1\n${HEADER}\n`)], []);
  t.deepEqual([...parseServersState("Can't find backend.\n")], []);
});

const unreadable: readonly (readonly [string, RegExp])[] = [
  ['Unknown command.\n', /Cannot read HAProxy's servers state: "Unknown command\."/],
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

test('parseServersState() reads 50,000 servers in short steps', (t) => {
  const row =
    '3 default:web:tcp:80:v4 77 10.0.0.1:80 10.0.0.1 2 0 100 100 0 1 0 2 0 0 0 1 - 80 - 0 0 - - 0\n';
  const text = `1\n${HEADER}\n${row.repeat(50_000)}`;
  let rows = 0;
  const steps: number[] = [];
  // Processor time, because other processes may hold up this one.
  let begun = process.threadCpuUsage();
  for (const _ of parseServersState(text)) {
    if (++rows % 1_000 === 0) {
      const { user, system } = process.threadCpuUsage(begun);
      steps.push((user + system) / 1_000);
      begun = process.threadCpuUsage();
    }
  }
  t.is(rows, 50_000);
  const median = steps.sort((a, b) => a - b)[25] ?? Infinity;
  t.true(median < 5, `1,000 rows take ${median} ms`);
});

test('keptRows() returns the rows of servers that are down or up, without changed servers and without draining', (t) => {
  const row = (name: string, operational: number, admin: number, address = '10.0.0.1', weight = 16): string =>
    `3 web 7 ${name} ${address} ${operational} ${admin} ${weight} 16 2 8 2 0 6 0 0 1 - 80 - 0 0 - - 0`;
  const [down, drained] = [row('10.0.0.1:80', 0, 0), row('2001:db8::1:80', 0, 8, '2001:db8::1')];
  const [up, out] = [row('10.0.0.1:80', 2, 0), row('10.0.0.1:80', 0, 1)];
  const moved = row('10.0.0.9:80', 0, 0);
  const reweighted = row('10.0.0.1:80', 2, 0, '10.0.0.1', 8);
  const text = ['1', HEADER, down, up, out, moved, reweighted, drained, ''].join('\n');
  const undrained = row('2001:db8::1:80', 0, 0, '2001:db8::1');
  t.deepEqual(keptRows(text), { header: HEADER, rows: [down, up, undrained] });
  t.deepEqual(keptRows("Can't find backend.\n"), { header: '', rows: [] });
  t.throws(() => keptRows('2\n'), { message: /Cannot read HAProxy's servers state/ });
});

test('parseServersState() throws nothing but a HeadgateError on any text', (t) => {
  const lines = fc.oneof(fc.string(), fc.constantFrom(...STATE.split('\n')));
  fc.assert(
    fc.property(fc.array(lines), (words) => {
      try {
        return [...parseServersState(words.join('\n'))].length >= 0;
      } catch (error) {
        return error instanceof HeadgateError && error.message.startsWith('Cannot ');
      }
    }),
    { numRuns: 1_000 },
  );
  t.pass();
});

test('isAtHome() compares the address and port with the name, however HAProxy writes the address', (t) => {
  const isHome = (name: string, address: string, port: number): boolean => {
    const row = `3 web 7 ${name} ${address} 2 0 16 16 2 8 2 0 6 0 0 1 - ${port} - 0 0 - - 0`;
    return [...parseServersState(`1\n${HEADER}\n${row}\n`)].every(isAtHome);
  };
  t.true(isHome('10.0.0.1:80', '10.0.0.1', 80));
  t.true(isHome('2001:db8::1:80', '2001:db8::1', 80));
  t.true(isHome('2001:db8::1:80', '2001:db8:0:0::1', 80));
  t.false(isHome('10.0.0.1:80', '10.0.0.1', 81));
  t.false(isHome('10.0.0.1:80', '10.0.0.2', 80));
  t.false(isHome('10.0.0.1:80', '10.0.0.1', 8));
  t.false(isHome('10.0.0.11:80', '10.0.0.1', 80));
  t.false(isHome('web', '-', 80));
});
