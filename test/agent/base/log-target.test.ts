import test from 'ava';
import { formatLogTarget, type LogTarget, parseLogTarget, socketOf } from '../../../agent/base/log-target.ts';

const TARGETS: readonly (readonly [text: string, target: LogTarget, socket: string])[] = [
  ['journald', { kind: 'journald' }, '/run/systemd/journal/dev-log'],
  ['192.0.2.1:514', { kind: 'syslog', address: '192.0.2.1', port: 514 }, ''],
  ['[2001:db8::1]:65535', { kind: 'syslog', address: '2001:db8::1', port: 65_535 }, ''],
  ['socket:/dev/log', { kind: 'socket', path: '/dev/log' }, '/dev/log'],
  ['file:/var/log/a-b_c.log', { kind: 'file', path: '/var/log/a-b_c.log' }, ''],
];

test('parseLogTarget() reads each kind of target, and formatLogTarget() writes it as it was read', (t) => {
  for (const [text, target, socket] of TARGETS) {
    t.deepEqual(parseLogTarget(text), target);
    t.is(formatLogTarget(target), text);
    t.is(socketOf(target), socket);
  }
});

test('parseLogTarget() refuses what could be more than one word of HAProxy, or no target', (t) => {
  const wrong = ['', 'syslog', 'stdout', 'localhost:514', '192.0.2.1', '192.0.2.1:0', '192.0.2.1:65536'];
  const paths = [
    'file:log',
    'file:/',
    'socket:/a b',
    'file:/a\nb',
    'file:/a"b',
    `socket:/${'x'.repeat(107)}`,
  ];
  for (const text of [...wrong, ...paths, '::1:514', '[192.0.2.1]:514', 'socket:/a#b', 'file:/a$B'])
    t.is(parseLogTarget(text), undefined, text);
});
