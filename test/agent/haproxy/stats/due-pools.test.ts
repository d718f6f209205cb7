import test from 'ava';
import { DuePools } from '../../../../agent/haproxy/stats/due-pools.ts';
import type { Listener } from '../../../../agent/model.ts';

const EVERYTHING = 'show stat -1 4 -1';
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
const listener = (own: Pick<Listener, 'name'>): Listener => ({ ...PLAIN, ...own });

class Host {
  changes = 0;
  time = 0;
  worker = '1 1';
  readonly pools = new Map<string, Listener>();
  readonly due = new DuePools({ changesOf: () => this.changes, now: () => this.time });

  /** What is asked for in one reading, in which these pools differ from the one before. */
  read(differ: readonly string[] = [], end = true): string {
    this.due.begin(this.worker);
    for (const [pool, of] of this.pools) this.due.pool(pool, of, differ.includes(pool));
    const commands = this.due.commands();
    if (end) this.due.done(this.worker);
    return commands;
  }
}

function hostOf(count: number): Host {
  const host = new Host();
  for (let at = 0; at < count; at++) host.pools.set(name(at), listener({ name: name(at) }));
  return host;
}

test('A worker is read as a whole first, then the pools that differ, and as a whole every minute', (t) => {
  const host = hostOf(3);
  t.is(host.read(), EVERYTHING);
  t.is(host.read(), '');
  t.deepEqual([...host.due.unread], [name(0), name(1), name(2)]);
  t.is(host.read([name(1)]), `show stat ${name(1)} 4 -1`);
  t.deepEqual([...host.due.unread], [name(0), name(2)]);
  t.is(host.read(), '');
  host.time = 59_999;
  t.is(host.read(), '');
  host.time = 60_000;
  t.is(host.read(), EVERYTHING);
  t.deepEqual([...host.due.unread], []);
  t.is(host.read(), '');
  host.worker = '2 9';
  t.is(host.read(), EVERYTHING);
});

test('A pool that differed stays due until its members have been read', (t) => {
  const host = hostOf(2);
  host.read();
  host.read([name(0)], false);
  t.is(host.read([], false), `show stat ${name(0)} 4 -1`);
  host.pools.delete(name(0));
  t.is(host.read([], false), '', 'It is gone, and HAProxy would not know it');
});

test('A pool is due when HAProxy was told something for it, and when the model has another', (t) => {
  const host = hostOf(1);
  host.read();
  host.changes++;
  t.is(host.read(), `show stat ${name(0)} 4 -1`);
  t.is(host.read(), '');
  host.pools.set(name(0), listener({ name: name(0) }));
  t.is(host.read(), `show stat ${name(0)} 4 -1`);
  t.is(host.read(), '');
});

test('A pool with a monitor is always due, with its second backend', (t) => {
  const host = hostOf(1);
  const [[pool, of]] = [...host.pools] as [[string, Listener]];
  const monitor = { kind: 'tcp' } as unknown as NonNullable<Listener['pool']['monitor']>;
  host.pools.set(pool, { ...of, pool: { ...of.pool, monitor, whenAllDown: 'serve' } });
  host.read();
  t.is(host.read(), `show stat ${pool} 4 -1;show stat ${pool}:all-down 4 -1`);
});

test('All are read where the commands for some would be a long line, or a name is none of ours', (t) => {
  const host = hostOf(1_000);
  host.read();
  const names = [...host.pools.keys()];
  t.regex(host.read(names.slice(0, 100)), /^(show stat \S+ 4 -1(;|$)){100}$/);
  t.is(host.read(names), EVERYTHING);
  t.is(host.read(), '');
  host.pools.set('a b;quit', listener({ name: 'a b;quit' }));
  t.is(host.read(), EVERYTHING);
});

test('Where members were left out for a while, all of them are read', (t) => {
  const host = hostOf(1);
  host.read();
  host.due.forget();
  t.is(host.read(), EVERYTHING);
});
