import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mock } from 'node:test';
import test from 'ava';
import {
  HaproxyMonitor,
  type HaproxyMonitorOptions,
} from '../../../../agent/haproxy/worker/haproxy-monitor.ts';
import { silentLog } from '../../../support/values/silent-log.ts';

test.serial('The log of a HAProxy that ends at each start is kept small, too', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'hg-caretaker-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const log = join(directory, 'haproxy.log');
  writeFileSync(log, 'Cannot bind\n');
  truncateSync(log, 2 * 1024 * 1024);
  const options = { paths: { log }, worker: () => undefined, log: silentLog() };
  const caretaker = new HaproxyMonitor(options as unknown as HaproxyMonitorOptions);
  mock.timers.enable({ apis: ['setInterval'] });
  t.teardown(() => mock.timers.reset());
  caretaker.start();
  t.teardown(() => caretaker.close());
  for (let second = 0; second < 1_000 && (await stat(log)).size > 0; second++) mock.timers.tick(1_000);
  t.is((await stat(log)).size, 0);
});
