import { mkdtempSync, renameSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { hasListened } from '../../../../agent/haproxy/instance/find-master.ts';

test('hasListened() finds a socket that HAProxy has bound, even if its file was removed', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'headgate-master-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const adminSocket = join(directory, 'admin.sock');
  t.false(await hasListened(process.pid, { adminSocket }));
  // As HAProxy does it.
  const draft = `${adminSocket}.${process.pid}.tmp`;
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(draft, resolve));
  renameSync(draft, adminSocket);
  t.true(await hasListened(process.pid, { adminSocket }));
  rmSync(adminSocket);
  t.true(await hasListened(process.pid, { adminSocket }));
  await new Promise((resolve) => server.close(resolve));
  t.false(await hasListened(process.pid, { adminSocket }));
  t.true(await hasListened(2 ** 30, { adminSocket }), 'Where the kernel does not say');
});
