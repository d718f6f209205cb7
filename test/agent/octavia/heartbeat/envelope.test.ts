import test from 'ava';
import { envelope, excessOf, fitsDatagram } from '../../../../agent/octavia/heartbeat/envelope.ts';

test('envelope() makes the bytes that Octavia makes of the same message', (t) => {
  const bytes = envelope('{"a": 1}', 'insecure');
  t.is(bytes.length, 80);
  t.is(bytes.subarray(0, 16).toString('hex'), '78daab564a54b25230ac050009e50229');
  t.true(bytes.subarray(16).toString('ascii').startsWith('dc9681eb'));
});

test('fitsDatagram() has the limit of UDP over IPv4', (t) => {
  t.true(fitsDatagram(Buffer.alloc(65_507)));
  t.false(fitsDatagram(Buffer.alloc(65_508)));
});

test('excessOf() is a little more than what is too much', (t) => {
  t.is(excessOf(Buffer.alloc(10)), 0.001);
  const part = excessOf(Buffer.alloc(131_014));
  t.true(part > 0.5 && part < 0.55);
});
