import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import {
  HaproxyMonitor,
  type HaproxyMonitorOptions,
} from '../../../../agent/haproxy/worker/haproxy-monitor.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';
import { silentLog } from '../../../support/values/silent-log.ts';

test('HaproxyMonitor trims the log of a HAProxy that ends at each start', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'hg-monitor-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const log = join(directory, 'haproxy.log');
  writeFileSync(log, 'Cannot bind\n');
  truncateSync(log, 2 * 1024 * 1024);
  const clock = new FakeClock();
  const options = { paths: { log }, worker: () => undefined, log: silentLog() };
  const monitor = new HaproxyMonitor({ ...options, clock } as unknown as HaproxyMonitorOptions);
  monitor.start();
  t.teardown(() => monitor.close());
  for (let second = 0; second < 1_000 && (await stat(log)).size > 0; second++) await clock.advance(1_000);
  t.is((await stat(log)).size, 0);
});
