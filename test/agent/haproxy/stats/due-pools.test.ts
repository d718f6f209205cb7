import test from 'ava';
import { DuePools, MEMBERS, POOLS } from '../../../../agent/haproxy/stats/due-pools.ts';
import type { Listener } from '../../../../agent/model/load-balancer.ts';
import { listenerIdentity } from '../../../support/load-balancers.ts';

const ALL_POOLS = 'show stat -1 2 -1';
const ALL_MEMBERS = 'show stat -1 4 -1';
const EVERYTHING = [ALL_POOLS, ALL_MEMBERS];
/** Pool and members of those that are named, of eight at a time. */
const named = (...names: readonly string[]): readonly string[] =>
  Array.from({ length: Math.ceil(names.length / 8) }, (_, at) =>
    commandsFor(names.slice(8 * at, 8 * at + 8), POOLS, MEMBERS),
  );
const commandsFor = (names: readonly string[], ...kinds: readonly number[]): string =>
  kinds.flatMap((kind) => names.map((each) => `show stat ${each} ${kind} -1`)).join(';');
const name = (at: number): string => `default:web-${at}:tcp:80:v4`;

const PLAIN = {
  protocol: 'TCP',
  portName: '',
  family: 'v4',
  port: 80,
  mode: 'tcp',
  acceptProxy: false,
  connectionLimit: 0,
  rateLimit: 0,
  clientTimeout: 1_000,
  addresses: [],
  allowedCidrs: [],
  pool: {
    algorithm: 'round-robin',
    persistence: 0,
    monitor: undefined,
    proxyProtocol: 'none',
    timeouts: { connect: 1_000, server: 1_000, tunnel: 0, queue: 1_000 },
    memberConnectionLimit: 0,
    whenEmpty: 'reject',
    whenAllDown: 'reject',
    members: [],
  },
} as const;
const listener = (own: Pick<Listener, 'name'>): Listener => ({
  ...PLAIN,
  ...listenerIdentity(own.name),
  ...own,
});

interface Said {
  /** Listeners whose rows differ from the reading before. */
  readonly differ?: readonly string[];
  readonly open?: readonly string[];
  /** Pools whose rows differ from the one before. */
  readonly changed?: readonly string[];
  readonly down?: readonly string[];
  readonly breaksOff?: boolean;
  /** Rows of pools and members that it has had. */
  readonly rows?: number;
  /** It is their sockets that have been told of. */
  readonly sockets?: boolean;
}

class Host {
  changes = 0;
  time = 0;
  worker = '1 1';
  kinds = POOLS + MEMBERS;
  /** Questions so far whose answers take long. */
  long = 0;
  readonly listeners = new Map<string, Listener>();
  readonly due = new DuePools({ changesOf: () => this.changes, now: () => this.time });

  /** What is asked for in one reading. */
  read({
    differ = [],
    open = [],
    changed = [],
    down = [],
    breaksOff = false,
    rows = 0,
    sockets = false,
  }: Said = {}): readonly string[] {
    this.due.begin(this.worker, this.kinds);
    let number = 0;
    for (const [each, listener] of this.listeners) {
      const id = sockets ? ++number : undefined;
      this.due.listener(each, listener, differ.includes(each), open.includes(each), id);
    }
    const asked: string[] = [];
    for (const { lines, isLong } of this.due.questions()) {
      const commands = lines.join(';');
      this.long += Number(isLong);
      asked.push(commands);
      for (const each of this.listeners.keys())
        if (commands.includes(ALL_POOLS) || commands.includes(`${each} ${POOLS} `))
          this.due.pool(each, changed.includes(each), !down.includes(each));
    }
    if (!breaksOff) this.due.done(rows);
    return asked;
  }
}

function hostOf(count: number): Host {
  const host = new Host();
  for (let at = 0; at < count; at++) host.listeners.set(name(at), listener({ name: name(at) }));
  return host;
}

test('A worker is read as a whole first, then what is below listeners that differ', (t) => {
  const host = hostOf(3);
  t.deepEqual(host.read(), EVERYTHING);
  t.is(host.long, 2);
  t.deepEqual([...host.due.unread], []);
  t.deepEqual(host.read(), []);
  t.deepEqual([...host.due.unread], [name(0), name(1), name(2)]);
  t.deepEqual(host.read({ differ: [name(1)] }), named(name(1)));
  t.is(host.long, 2);
  t.deepEqual([...host.due.unread], [name(0), name(2)]);
  t.deepEqual(host.read(), []);
  host.worker = '2 9';
  t.deepEqual(host.read(), EVERYTHING);
});

test('Of what is as it was a few are read each time, all of them within ten minutes, at once where nobody asked', (t) => {
  const host = hostOf(40);
  host.read();
  host.time = 15_000;
  t.deepEqual(host.read({ differ: [name(5)], breaksOff: true }), named(name(5), name(0)));
  t.deepEqual(host.read({ differ: [name(5)] }), named(name(5), name(0)), 'Again, because it broke off');
  t.false(host.due.unread.has(name(0)));
  t.true(host.due.unread.has(name(1)));
  const seen: string[] = [];
  for (host.time = 30_000; host.time <= 600_000; host.time += 15_000) seen.push(...host.read());
  t.deepEqual(seen, [...Array.from({ length: 39 }, (_, at) => named(name(at + 1)))].flat());
  host.time += 285_000;
  t.deepEqual(host.read(), named(...Array.from({ length: 20 }, (_, at) => name(at))));
  host.time += 600_000;
  t.deepEqual(host.read(), EVERYTHING);
  t.deepEqual([...host.due.unread], []);
});

test('Beside those that differ, where these are many, the members of a few others are read as well', (t) => {
  const host = hostOf(300);
  host.read();
  host.time = 24_000;
  const open = [...host.listeners.keys()];
  const others = Array.from({ length: 12 }, (_, at) => name(at));
  const lines = [others.slice(0, 8), others.slice(8)].map((names) => commandsFor(names, MEMBERS));
  t.deepEqual(host.read({ open }), [ALL_POOLS, ...lines]);
  t.is(host.due.unread.size, 288);
});

test('What differed stays due until it has been read', (t) => {
  const host = hostOf(2);
  host.read();
  host.read({ differ: [name(0)], breaksOff: true });
  t.deepEqual(host.read({ breaksOff: true }), named(name(0)));
  host.listeners.delete(name(0));
  t.deepEqual(host.read({ breaksOff: true }), [], 'It is gone, and HAProxy would not know it');
});

test('A pool is due when HAProxy was told something for it, and when the model has another', (t) => {
  const host = hostOf(1);
  host.read();
  host.changes++;
  t.deepEqual(host.read(), named(name(0)));
  t.deepEqual(host.read(), []);
  host.listeners.set(name(0), listener({ name: name(0) }));
  t.deepEqual(host.read(), named(name(0)));
  t.deepEqual(host.read(), []);
});

test('A pool is read for as long as it is down, or its listener has a connection, which may be tried again', (t) => {
  const host = hostOf(2);
  host.read({ down: [name(0)] });
  t.deepEqual(host.read({ down: [name(0)], open: [name(1)] }), named(name(0), name(1)));
  t.deepEqual(host.read(), named(name(0)));
  t.deepEqual(host.read(), []);
});

test('A pool with a monitor is always due, with its second backend', (t) => {
  const host = hostOf(1);
  const [[pool, of]] = [...host.listeners] as [[string, Listener]];
  const monitor = { kind: 'tcp' } as unknown as NonNullable<Listener['pool']['monitor']>;
  host.listeners.set(pool, { ...of, pool: { ...of.pool, monitor, whenAllDown: 'serve' } });
  host.read();
  t.deepEqual(host.read(), named(pool, `${pool}:all-down`));
});

test('Where too many may have changed to be named, all pools are read, and members of those that have', (t) => {
  const host = hostOf(1_000);
  host.read();
  const names = [...host.listeners.keys()];
  t.deepEqual(host.read({ open: names.slice(0, 64) }), named(...names.slice(0, 64)));
  t.deepEqual(host.read({ open: names }), [ALL_POOLS]);
  const [first = '', second = ''] = names;
  t.deepEqual(host.read({ differ: [first], open: names, changed: [second] }), [
    ALL_POOLS,
    `show stat ${first} 4 -1;show stat ${second} 4 -1`,
  ]);
  t.is(host.due.unread.size, 998);
  t.deepEqual(host.read(), []);
});

test('Everything is read where too many have changed, or a name is none of ours', (t) => {
  const host = hostOf(1_000);
  host.read();
  t.deepEqual(host.read({ differ: [...host.listeners.keys()] }), EVERYTHING);
  t.deepEqual([...host.due.unread], []);
  t.deepEqual(host.read(), []);
  host.listeners.set('a b;quit', listener({ name: 'a b;quit' }));
  t.deepEqual(host.read(), EVERYTHING);
});

test('All pools, once read, are left alone for a time that their rows say, so that whoever asks every thirty seconds has all', (t) => {
  const host = hostOf(1_000);
  const names = [...host.listeners.keys()];
  host.read({ rows: 2_000 });
  t.deepEqual(host.read({ differ: names }), [], 'After the first reading as well');
  t.true(host.due.isPutOff);
  t.is(host.due.unread.size, 1_000);
  host.time = 4_799;
  t.deepEqual(host.read({ sockets: true }), [], 'Of listeners the sockets have been told of');
  t.true(host.due.isPutOff);
  host.time = 4_800;
  t.deepEqual(host.read({ rows: 1_000_000 }), EVERYTHING, 'All that has changed since');
  t.false(host.due.isPutOff);
  host.time = 33_799;
  t.deepEqual(host.read({ differ: names }), []);
  t.deepEqual(host.read({ differ: names }), []);
  host.time = 33_800;
  t.deepEqual(host.read({ breaksOff: true }), EVERYTHING);
  t.deepEqual(host.read({ rows: 1_000_000 }), EVERYTHING, 'Again, because it broke off');
  t.deepEqual(host.read({ differ: names.slice(0, 3) }), named(...names.slice(0, 3)), 'Few are no burden');
  t.deepEqual(host.read({ differ: names }), []);
  host.due.catchUp();
  t.deepEqual(host.read({ rows: 1_000_000 }), EVERYTHING, 'Who wants all has it');
  host.worker = '2 9';
  t.deepEqual(host.read(), EVERYTHING, 'Of another worker nothing is known');
});

test('What is not wanted is not asked for, and everything is read where more or less is wanted than before', (t) => {
  const host = hostOf(1);
  host.read();
  host.kinds = POOLS;
  t.deepEqual(host.read(), [ALL_POOLS]);
  t.deepEqual([...host.due.unread], [], 'Members are not kept');
  t.deepEqual(host.read({ differ: [name(0)] }), [`show stat ${name(0)} 2 -1`]);
  host.kinds = 0;
  t.deepEqual(host.read({ differ: [name(0)] }), []);
  t.deepEqual([...host.due.unread], []);
  host.kinds = POOLS + MEMBERS;
  t.deepEqual(host.read(), EVERYTHING);
});

test('Where there are many listeners, sockets are asked for first', (t) => {
  const few = hostOf(128);
  few.read();
  t.false(few.due.wantsSockets);
  const host = hostOf(1_000);
  t.false(host.due.wantsSockets, 'How many there are is not known yet');
  host.read();
  t.true(host.due.wantsSockets);
  host.read({ open: [...host.listeners.keys()] });
  t.true(host.due.wantsSockets, 'Also where more have had connections than can be named');
});

test('Of listeners of whom only the sockets have been told, those that may have changed are asked for, too', (t) => {
  const host = hostOf(1_000);
  host.read();
  t.deepEqual(host.read({ sockets: true }), []);
  t.is(host.due.unread.size, 1_000);
  const both = [`show stat 8 1 -1;show stat 10 1 -1;${named(name(7), name(9))[0]}`];
  t.deepEqual(host.read({ sockets: true, differ: [name(7)], open: [name(9)] }), both);
  t.is(host.due.unread.size, 998);
  host.kinds = 0;
  host.read({ sockets: true });
  t.deepEqual(host.read({ sockets: true, differ: [name(7)] }), ['show stat 8 1 -1']);
  host.kinds = POOLS + MEMBERS;
  host.read();
  const names = [...host.listeners.keys()];
  t.deepEqual(host.read({ sockets: true, differ: names }), ['show stat -1 1 -1', ...EVERYTHING]);
  t.deepEqual([...host.due.unread], []);
});

test('A listener with more addresses than there are groups of sockets is always due', (t) => {
  const host = hostOf(1);
  host.listeners.set(name(0), { ...listener({ name: name(0) }), addresses: Array(33).fill('192.0.2.1') });
  host.read();
  t.deepEqual(host.read({ sockets: true }), [`show stat 1 1 -1;${named(name(0))[0]}`]);
});

test('A worker of which not every listener has sockets that count is asked for all of them', (t) => {
  const host = hostOf(200);
  host.read();
  host.due.begin(host.worker, host.kinds);
  for (const [each, listener] of [...host.listeners].slice(1))
    host.due.listener(each, listener, false, false, 1);
  t.true(host.due.lacksSockets());
  host.due.done(0);
  t.false(host.due.wantsSockets, 'Not again');
  host.read();
  t.false(host.due.wantsSockets);
  host.worker = '2 9';
  host.read();
  t.true(host.due.wantsSockets, 'Another worker');
  host.read({ sockets: true });
  t.false(host.due.lacksSockets());
});
