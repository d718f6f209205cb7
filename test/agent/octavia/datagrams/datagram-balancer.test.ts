import test from 'ava';
import { isListener, ownerOf, ownerOfListener } from '../../../../agent/model/names.ts';
import { datagramBalancer, datagramListener } from '../../../../agent/octavia/datagrams/datagram-balancer.ts';
import { reportedListener } from '../../../../agent/octavia/datagrams/datagram-report.ts';
import type { DatagramText, VirtualServer } from '../../../../agent/octavia/datagrams/datagram-text.ts';
import { LISTENER, member, POOL } from '../../../support/octavia/datagram-listeners.ts';

const CHECK = { kind: 'udp', address: '10.9.0.31', port: 5353, timeout: 3, path: '', codes: [] } as const;
const MEMBER = { id: member(1), address: '10.9.0.31', port: 5353, weight: 1, limit: 0, check: CHECK };

function textOf(server: Partial<VirtualServer> = {}, isEnabled = true): DatagramText {
  const all: VirtualServer = {
    family: 'v4',
    vips: [{ address: '10.9.0.100', port: 53 }],
    protocol: 'UDP',
    algorithm: 'wrr',
    persistence: undefined,
    delay: 5,
    fall: 3,
    pool: { id: POOL, isEnabled: true },
    members: [MEMBER],
    disabled: [],
    ...server,
  };
  return { listener: LISTENER, isEnabled, servers: [all] };
}

const NAME = `datagrams:-:${LISTENER}:udp:53:v4`;

test('datagramBalancer() makes a listener of the kernel, whose name leads to the id', (t) => {
  const { key, listeners, problems } = datagramBalancer(
    textOf({ persistence: { seconds: 60, prefix: 24 }, algorithm: 'sh' }),
  );
  t.is(listeners.length, 1);
  t.like(listeners[0], { name: NAME, engine: 'kernel', addresses: ['10.9.0.100'], port: 53 });
  t.like(listeners[0]?.pool, {
    algorithm: 'source-hash',
    persistence: 60,
    persistencePrefix: 24,
    whenAllDown: 'reject',
    monitor: { interval: 5_000, timeout: 3_000, fall: 3, rise: 1 },
  });
  t.true(isListener(NAME));
  t.is(ownerOfListener(NAME), key);
  t.is(ownerOf(key).name, LISTENER);
  t.deepEqual(problems, []);
});

test('datagramBalancer() names once what the kernel does otherwise', (t) => {
  const limited = [MEMBER, { ...MEMBER, id: member(2), port: 5354 }].map((each) => ({ ...each, limit: 9 }));
  const { problems } = datagramBalancer(textOf({ algorithm: 'lc', members: limited }));
  t.deepEqual(
    problems.map(({ object, reason, message }) => [object, reason, message.split(':')[0]]),
    [
      [
        `Listener ${LISTENER}`,
        'OptionIgnored',
        'Cannot choose the member with the least connections (lb_algo lc)',
      ],
      [`Listener ${LISTENER}`, 'OptionIgnored', 'Cannot limit the flows of a member (uthreshold)'],
    ],
  );
});

test('datagramBalancer() has no listeners without a pool, or if the listener is disabled', (t) => {
  t.deepEqual(datagramBalancer({ ...textOf(), servers: [] }).listeners, []);
  t.deepEqual(datagramBalancer(textOf({}, false)).listeners, []);
});

/** The status of the pool, and those of its members. */
function reported(server: Partial<VirtualServer>, down: readonly string[] = []): readonly string[] {
  const text = textOf(server);
  const facts = new Map(
    down.map((name) => [name, { state: 'ready', weight: 1, isDown: true, cause: 'x' } as const]),
  );
  const name = datagramListener(LISTENER, text.servers[0] as VirtualServer);
  const traffic = new Map([[name, { received: 10, sent: 20, flows: 3 }]]);
  const { pool, stats } = reportedListener(text, { members: () => facts, traffic });
  if (stats.rx !== 10 || stats.tx !== 20 || stats.totconns !== 3) return ['wrong counters'];
  return [pool?.status ?? 'no pool', ...(pool?.members.values() ?? [])];
}

test('reportedListener() gives each member its status, and the pool DOWN only if a monitor finds none up', (t) => {
  const { check: _, ...unchecked } = MEMBER;
  const second = { ...MEMBER, id: member(2), address: '10.9.0.32' };
  t.deepEqual(reported({}), ['UP', 'UP']);
  t.deepEqual(reported({}, ['10.9.0.31:5353']), ['DOWN', 'DOWN']);
  t.deepEqual(reported({ members: [MEMBER, second] }, ['10.9.0.31:5353']), ['UP', 'DOWN', 'UP']);
  t.deepEqual(reported({ members: [{ ...MEMBER, weight: 0 }] }), ['UP', 'DRAIN']);
  t.deepEqual(reported({ members: [{ ...unchecked, check: undefined }], disabled: [member(3), member(4)] }), [
    'UP',
    'no check',
    'MAINT',
    'MAINT',
  ]);
  t.deepEqual(reported({ members: [], disabled: [member(3)] }), ['UP', 'MAINT']);
  t.deepEqual(reported({ pool: { id: POOL, isEnabled: false }, members: [] }), ['no pool']);
});
