// The texts are those that Octavia's own templates print.

import ava from 'ava';
import { readDatagramText } from '../../../../agent/octavia/datagrams/datagram-text.ts';
import { requires } from '../../../support/basics/requirements.ts';
import {
  LISTENER,
  type ListenerGiven,
  listener,
  member,
  POOL,
} from '../../../support/octavia/datagram-listeners.ts';
import { renderListener } from '../../../support/octavia/render.ts';

const test = requires(ava, { programs: ['octavia-worker'] });

const read = async (given: ListenerGiven) => readDatagramText(await renderListener(listener(given)));

test('readDatagramText() reads both families with their members, ids and checks', async (t) => {
  const { servers, ...rest } = await read({
    vips: ['10.9.0.100', 'fd09::100', '10.9.0.101'],
    algorithm: 'SOURCE_IP',
    connectionLimit: 98,
    persistence: { granularity: '255.255.0.0', timeout: 60 },
    monitor: { type: 'UDP-CONNECT' },
    members: [
      { number: 1 },
      { number: 2, enabled: false },
      { number: 3, address: 'fd09::33', weight: 0, monitorAddress: 'fd09::77', monitorPort: 99 },
      { number: 4, enabled: false },
    ],
  });
  t.deepEqual(rest, { listener: LISTENER, isEnabled: true });
  const [v4, v6] = servers;
  t.deepEqual(v4, {
    family: 'v4',
    vips: [
      { address: '10.9.0.100', port: 53 },
      { address: '10.9.0.101', port: 53 },
    ],
    protocol: 'UDP',
    algorithm: 'sh',
    persistence: { seconds: 60, prefix: 16 },
    delay: 5,
    fall: 3,
    pool: { id: POOL, isEnabled: true },
    members: [
      {
        ...{ address: '10.9.0.31', port: 5353, id: member(1), weight: 1, limit: 98 },
        check: { kind: 'udp', address: '10.9.0.31', port: 5353, timeout: 3, path: '', codes: [] },
      },
    ],
    disabled: [member(2), member(4)],
  });
  t.like(v6, { family: 'v6', persistence: { seconds: 60, prefix: undefined }, disabled: [] });
  t.like(v6?.members[0], { weight: 0, check: { address: 'fd09::77', port: 99 } });
});

test('readDatagramText() reads every kind of check', async (t) => {
  const checkOf = async (protocol: 'UDP' | 'SCTP', monitor: NonNullable<ListenerGiven['monitor']>) =>
    (await read({ protocol, monitor, members: [{ number: 1 }] })).servers[0]?.members[0]?.check;
  t.like(await checkOf('SCTP', { type: 'SCTP' }), { kind: 'sctp', timeout: 3 });
  t.like(await checkOf('UDP', { type: 'TCP' }), { kind: 'tcp', timeout: 3, port: 5353 });
  const http = { type: 'HTTP', http_method: 'GET', url_path: '/a?b=1', expected_codes: '200-202,204' };
  t.like(await checkOf('UDP', http), { kind: 'http', path: '/a?b=1', codes: [200, 201, 202, 204] });
  // What Octavia cannot check either.
  t.is(await checkOf('UDP', { ...http, http_method: 'POST' }), undefined);
  t.is(await checkOf('UDP', { type: 'PING' }), undefined);
});

test('readDatagramText() reads a prefix of IPv6', async (t) => {
  const { servers } = await read({
    vips: ['fd09::100'],
    persistence: { granularity: '64' },
    members: [{ number: 1, address: 'fd09::31' }],
  });
  t.deepEqual(servers[0]?.persistence, { seconds: 360, prefix: 64 });
});

test('readDatagramText() reads listeners and pools that are disabled, and a listener without a pool', async (t) => {
  t.deepEqual(await read({ enabled: false, members: [{ number: 1 }] }), {
    listener: LISTENER,
    isEnabled: false,
    servers: [],
  });
  t.deepEqual(await read({}), { listener: LISTENER, isEnabled: true, servers: [] });
  const { servers } = await read({ poolEnabled: false, members: [{ number: 1 }] });
  t.like(servers[0], { pool: { id: POOL, isEnabled: false }, members: [] });
});

test('readDatagramText() refuses a text with the line that it cannot read', async (t) => {
  const text = await renderListener(listener({ monitor: { type: 'TCP' }, members: [{ number: 1 }] }));
  const changes: readonly (readonly [from: string, to: string, message: RegExp])[] = [
    ['weight 1', 'weight 1\n        notify_down "/bin/sh"', /Cannot read line \d+: "notify_down/],
    ['weight 1', 'weight 257', /: "weight 257"/],
    ['weight 1', 'weight 1 2', /: "weight 1 2"/],
    ['lb_kind NAT', 'lb_kind DR', /: "lb_kind DR"/],
    ['10.9.0.100 53', '10.9.0.100 0', /: "10.9.0.100 0"/],
    ['10.9.0.100 53', '10.9.0.100 53\n10.9.0.101 54', /: "10.9.0.101 54"/],
    ['real_server 10.9.0.31', 'real_server fd09::31', /: "real_server/],
    ['connect_timeout 3', 'connect_timeout 3\n } MISC_CHECK {', /: "} MISC_CHECK {"/],
    [`Member ${member(1)}`, 'Member ../../etc', /: "# Configuration for Member/],
    ['virtual_server group', 'constructor group', /: "constructor group/],
    [`# Configuration for Listener ${LISTENER}`, '', /does not name its listener/],
  ];
  for (const [from, to, message] of changes) {
    t.true(text.includes(from), from);
    t.throws(() => readDatagramText(text.replace(from, to)), { code: 'OCTAVIA_INVALID', message });
  }
  t.throws(() => readDatagramText(text.trimEnd().slice(0, -1)), {
    code: 'OCTAVIA_INVALID',
    message: /ends within/,
  });
  t.throws(() => readDatagramText(''), { code: 'OCTAVIA_INVALID' });
});
