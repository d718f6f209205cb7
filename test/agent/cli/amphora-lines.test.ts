import test from 'ava';
import {
  amphoraListLines,
  amphoraStatusLines,
  amphoraWhyLines,
  isAmphora,
} from '../../../agent/cli/amphora-lines.ts';
import type { Line } from '../../../agent/cli/text.ts';
import type { AmphoraListener, AmphoraStatus } from '../../../agent/octavia/report/amphora-report.ts';

const STATUS: AmphoraStatus = {
  amphora: { id: 'amp', topology: 'SINGLE', address: '[::]:9443' },
  version: '1.2.3',
  startedAt: '2026-11-29T00:00:00.000Z',
  loadBalancers: [
    {
      ...{ id: 'lb', listeners: 2, isRunning: true, text: 'abc', since: '2026-11-29T00:00:01.000Z' },
      ...{ isBehind: true, lastReload: 'bind differs', fault: '' },
    },
  ],
  heartbeat: {
    controllers: ['192.0.2.1:5555'],
    sent: 7,
    lastAt: '2026-11-29T00:00:02.000Z',
    lastTo: '192.0.2.1:5555',
    fault: '',
  },
  fault: '',
};

const LISTENER: AmphoraListener = {
  ...{ id: 'web', loadBalancer: 'lb', type: 'HTTP', place: '10.0.0.10:80', engine: 'haproxy' },
  ...{ status: 'OPEN', connections: 3 },
  pools: [{ id: 'pool', status: 'UP', members: { one: 'UP', two: 'DOWN', three: 'no check' } }],
};

/** As a terminal without colours shows them. */
const shown = (lines: readonly Line[]): readonly string[] =>
  lines.map((line) =>
    typeof line === 'string'
      ? line
      : line.map((part) => (typeof part === 'string' ? part : part.text)).join(''),
  );

test('amphoraStatusLines() shows the text that runs, the last reload and the last heartbeat', (t) => {
  t.true(isAmphora(STATUS));
  t.deepEqual(shown(amphoraStatusLines(STATUS)), [
    'Headgate 1.2.3, since 2026-11-29T00:00:00.000Z, is an amphora of Octavia',
    'Amphora:        amp, SINGLE, API at [::]:9443',
    'Controllers:    192.0.2.1:5555',
    'Heartbeats:     7, last one 2026-11-29T00:00:02.000Z to 192.0.2.1:5555',
    'Load balancer:  lb, 2 listeners',
    '  HAProxy:      runs abc since 2026-11-29T00:00:01.000Z',
    '  Upload:       the last uploaded text does not run yet',
    '  Last reload:  bind differs',
    'Fault:          none',
  ]);
});

test('amphoraListLines() counts the members that take connections', (t) => {
  t.deepEqual(shown(amphoraListLines([LISTENER])), [
    'LISTENER  TYPE  ADDRESS       POOLS  MEMBERS  ENGINE   STATUS',
    'web       HTTP  10.0.0.10:80  1      2/3      haproxy  OPEN',
  ]);
  t.deepEqual(shown(amphoraListLines([])), ['No listener']);
});

test('amphoraWhyLines() shows pools and members of a listener', (t) => {
  const lines = shown(amphoraWhyLines({ ...LISTENER, status: '' }, undefined));
  t.deepEqual(lines, [
    'web: HTTP 10.0.0.10:80, not served',
    'Engine:         haproxy',
    'Connections:    3',
    'Pool:           pool, UP',
    '  one  UP',
    '  two  DOWN',
    '  three  no check',
  ]);
});
