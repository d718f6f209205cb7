import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { noAuth } from '../../../../../agent/vips/keepalived/auth/auth-steps.ts';
import { Authentication } from '../../../../../agent/vips/keepalived/auth/authentication.ts';
import { silentLog } from '../../../../support/values/silent-log.ts';

const ENFORCED = `  auth_hmac {
    key 7 hex:${'aa'.repeat(32)}
    active_key 7
    time_window 60
    mode enforce
  }
`;

test('Authentication continues from keepalived.conf, keeps the last good key, and follows an older keepalived', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'hg-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const path = join(folder, 'key');
  await writeFile(path, 'aa'.repeat(32), { mode: 0o600 });
  let canUse = true;
  const auth = new Authentication({
    path: () => path,
    canUse: () => canUse,
    version: () => '2.4.3',
    log: silentLog(),
  });
  let changes = 0;
  auth.onChanged(() => changes++);
  auth.adopt(ENFORCED);
  await auth.readKey();
  t.false(auth.isDue);
  t.is(auth.report.level, 'enforce');
  t.is(auth.report.wants, 'enforce');
  t.is(auth.status().why, '');
  await writeFile(path, 'short');
  await auth.readKey();
  t.false(auth.isDue, 'The last good key stays');
  t.regex(auth.status().why, /64 to 128 hex digits/);
  canUse = false;
  t.deepEqual(auth.next, noAuth);
  auth.applied(auth.next);
  t.is(changes, 1);
  t.deepEqual(auth.report, { level: 'off', wants: 'off', keys: [], active: '' });
});
