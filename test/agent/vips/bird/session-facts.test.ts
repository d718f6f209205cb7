import test from 'ava';
import { bfdIn, isSameSession, routesIn, sessionsIn } from '../../../../agent/vips/bird/session-facts.ts';

// As BIRD 2.0.12 writes it.
const ESTABLISHED = `Name       Proto      Table      State  Since         Info
hg_vips4   Static     announced4 up     2026-11-29 01:00:45  

hg_tor_a  BGP        ---        up     2026-11-29 01:00:46  Established   
  BGP state:          Established
    Neighbor address: 10.99.0.1
  Channel ipv4
    State:          UP
    Export limit:   2 [HIT]
      Action:       block
    Routes:         0 imported, 2 exported, 0 preferred
  Channel ipv6
    State:          DOWN

hg_tor_b  BGP        ---        start  2026-11-29 01:01:13  Idle          Received: Bad peer AS
  BGP state:          Idle
    Last error:       Received: Bad peer AS
  Channel ipv4
    State:          DOWN
`.split('\n');

test('sessionsIn() reads the sessions of BGP alone', (t) => {
  const found = sessionsIn(ESTABLISHED);
  t.deepEqual([...found.keys()], ['hg_tor_a', 'hg_tor_b']);
  t.like(found.get('hg_tor_a'), {
    state: 'Established',
    since: Date.UTC(2026, 10, 29, 1, 0, 46),
    lastError: '',
    isUp: true,
    channels: ['v4'],
    exported: { v4: 2, v6: 0 },
    limited: ['v4'],
  });
  t.like(found.get('hg_tor_b'), {
    state: 'Idle',
    lastError: 'Received: Bad peer AS',
    isUp: false,
    limited: [],
  });
});

test('bfdIn() reads the state by address, also of a link-local one', (t) => {
  const lines = [
    'hg_bfd:',
    'IP address                Interface  State      Since         Interval  Timeout',
    '10.99.0.1                 vx         Up         2026-11-29 01:00:46    0.100    0.500',
    'fe80::1                   eth0       Down       2026-11-29 01:00:46    1.000    0.000',
  ];
  t.deepEqual(
    [...bfdIn(lines)],
    [
      ['10.99.0.1', 'Up'],
      ['fe80::1', 'Down'],
    ],
  );
});

test('routesIn() reads the addresses and when each route has changed', (t) => {
  const lines = [
    'Table announced4:',
    '198.51.100.2/32      blackhole [hg_vips4 2026-11-29 01:00:45] * (200)',
    '2001:db8::1/128      blackhole [hg_vips6 2026-11-29 01:00:46] * (200)',
  ];
  t.deepEqual(
    [...routesIn(lines)],
    [
      ['198.51.100.2', Date.UTC(2026, 10, 29, 1, 0, 45)],
      ['2001:db8::1', Date.UTC(2026, 10, 29, 1, 0, 46)],
    ],
  );
});

test('isSameSession() takes neither a rounded second nor a clock that is set for the end of a session', (t) => {
  const at = (since: number) => ({ since });
  t.true(isSameSession(at(60_000), at(60_000), 0));
  t.true(isSameSession(at(60_000), at(61_000), 20));
  t.true(isSameSession(at(60_000), at(59_000), -3));
  t.true(isSameSession(at(60_000), at(3_660_000), 3_600_000));
  t.false(isSameSession(at(60_000), at(64_000), 0));
  t.false(isSameSession(at(60_000), at(60_000), 3_600_000));
});
