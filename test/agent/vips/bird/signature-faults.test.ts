import test from 'ava';
import { parseSignatureFaults } from '../../../../agent/vips/bird/signature-faults.ts';

test('parseSignatureFaults() reads the counters of the kernel, and zeros where it has none', (t) => {
  const text =
    'TcpExt: SyncookiesSent TCPMD5NotFound TCPMD5Unexpected TCPMD5Failure\nTcpExt: 5 1 2 3\nIpExt: InNoRoutes\nIpExt: 7\n';
  t.deepEqual(parseSignatureFaults(text), { missing: 1, unexpected: 2, wrong: 3 });
  t.deepEqual(parseSignatureFaults(''), { missing: 0, unexpected: 0, wrong: 0 });
});
