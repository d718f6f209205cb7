import test from 'ava';
import { parseSocketAddress, socketAddress } from '../../../agent/base/socket-address.ts';

test('An IPv6 address has brackets before its port', (t) => {
  t.is(socketAddress('2001:db8::1', 80), '[2001:db8::1]:80');
  t.is(socketAddress('192.0.2.1', 80), '192.0.2.1:80');
});

test('parseSocketAddress() reads what socketAddress() writes, and nothing else', (t) => {
  for (const [address, port] of [
    ['192.0.2.1', 0],
    ['192.0.2.1', 65_535],
    ['2001:db8::1', 80],
  ] as const)
    t.deepEqual(parseSocketAddress(socketAddress(address, port)), { address, port });
  for (const text of [
    '192.0.2.1',
    '192.0.2.1:65536',
    '192.0.2:80',
    '2001:db8::1:80',
    '[192.0.2.1]:80',
    'a:80',
    '',
  ])
    t.is(parseSocketAddress(text), undefined, text);
});
