import test from 'ava';
import {
  composeMessage,
  countersOf,
  type RunningText,
  withoutMembers,
} from '../../../../agent/octavia/heartbeat/message.ts';

const row = (pxname: string, svname: string, columns: Record<string, string> = {}) =>
  new Map(Object.entries({ pxname, svname, ...columns }));

const RUNNING: RunningText = {
  text: {
    listeners: [{ id: 'web', type: 'HTTP', bind: '' }],
    pools: [
      { name: 'p:web', pool: 'p', listener: 'web', members: ['up', 'drain', 'none'] },
      { name: 'empty:web', pool: 'empty', listener: 'web', members: [] },
    ],
    files: new Set(),
  },
  rows: [
    row('prometheus-exporter-internal-endpoint', 'FRONTEND', { status: 'OPEN', bin: '1' }),
    row('web', 'FRONTEND', { status: 'OPEN', scur: '4', bin: '10', bout: '20', stot: '3', ereq: '1' }),
    row('p:web', 'up', { status: 'UP 1/3', weight: '1' }),
    row('p:web', 'drain', { status: 'UP', weight: '0' }),
    row('p:web', 'none', { status: 'no check', weight: '1' }),
    row('p:web', 'removed', { status: 'MAINT' }),
    row('p:web', 'BACKEND', { status: 'UP' }),
    row('empty:web', 'BACKEND', { status: 'DOWN' }),
  ],
};

test('composeMessage() reports the listeners, pools and members of the text', (t) => {
  const message = composeMessage(
    { id: 'amp', seq: 7 },
    [RUNNING],
    [],
    new Map([['web', { tx: 20, rx: 10, totconns: 3, ereq: 1 }]]),
  );
  t.deepEqual(message, {
    id: 'amp',
    seq: 7,
    listeners: { web: { status: 'OPEN', stats: { tx: 20, rx: 10, totconns: 3, ereq: 1, conns: 4 } } },
    pools: {
      'p:web': { status: 'UP', members: { up: 'UP 1/3', drain: 'DRAIN', none: 'no check' } },
      'empty:web': { status: 'UP', members: {} },
    },
    ver: 3,
  });
});

test('composeMessage() reports a pool of two listeners once', (t) => {
  const { text, rows } = RUNNING;
  const twice = {
    text: { ...text, pools: [...text.pools, { name: 'p:tcp', pool: 'p', listener: 'tcp', members: [] }] },
    rows,
  };
  t.deepEqual(Object.keys(composeMessage({ id: 'a', seq: 0 }, [twice], [], new Map()).pools), [
    'p:web',
    'empty:web',
  ]);
});

test('composeMessage() reports listeners of the kernel path with the id of the pool alone', (t) => {
  const stats = { tx: 1, rx: 2, conns: 3, totconns: 4 };
  const pool = { id: 'p', status: 'UP' as const, members: new Map([['m', 'DRAIN' as const]]) };
  const { listeners, pools } = composeMessage(
    { id: 'a', seq: 0 },
    [],
    [
      { id: 'udp', stats, pool },
      { id: 'bare', stats, pool: undefined },
    ],
    new Map([['udp', { tx: 1, rx: 2, totconns: 4, ereq: 0 }]]),
  );
  t.deepEqual(listeners.udp, { status: 'OPEN', stats: { tx: 1, rx: 2, totconns: 4, ereq: 0, conns: 3 } });
  t.deepEqual(Object.keys(listeners), ['udp', 'bare']);
  t.deepEqual(pools, { p: { status: 'UP', members: { m: 'DRAIN' } } });
});

test('countersOf() has the listeners of users only', (t) => {
  t.deepEqual([...countersOf(RUNNING.rows)], [['web', { tx: 20, rx: 10, totconns: 3, ereq: 1 }]]);
});

test('withoutMembers() leaves out members that the controller does without first, and never a listener', (t) => {
  const message = composeMessage({ id: 'a', seq: 0 }, [RUNNING], [], new Map());
  const some = withoutMembers(message, 0.3);
  t.is(some.left, 1);
  t.deepEqual(Object.keys(some.message.pools['p:web']?.members ?? {}), ['up', 'drain']);
  const all = withoutMembers(message, 1);
  t.is(all.left, 3);
  t.deepEqual(all.message.pools['p:web'], { status: 'UP', members: {} });
  t.deepEqual(all.message.listeners, message.listeners);
});
