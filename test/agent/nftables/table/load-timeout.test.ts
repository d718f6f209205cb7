import test from 'ava';
import { loadTimeoutMs } from '../../../../agent/nftables/table/load-timeout.ts';

test('The timeout of a load grows with the file', (t) => {
  t.is(loadTimeoutMs(0), 30_000);
  t.is(loadTimeoutMs(1024 ** 2), 46_000);
  // 250,000 elements.
  t.is(loadTimeoutMs(15 * 1024 ** 2), 270_000);
});
