// The first process of a container: which lock of the host it ends. What it does with the agent is in test/image/container.test.ts.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ava, { type ExecutionContext } from 'ava';

const test = ava;
const start = fileURLToPath(new URL('../../deploy/container/start', import.meta.url));

test('A pod that was stopped has locked its host only for its own end', async (t) => {
  const state = await after(t, 'maintenance', 'stopping');
  t.false(existsSync(join(state, 'maintenance')));
  t.false(existsSync(join(state, 'stopping')));
});

test('A lock of an operator outlives the pod', async (t) => {
  t.true(existsSync(join(await after(t, 'maintenance'), 'maintenance')));
});

/** The state folder after a start with these files, whose agent ends at once. */
async function after(t: ExecutionContext, ...files: readonly string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hg-start-'));
  t.teardown(() => rm(folder, { recursive: true }));
  for (const name of files) await writeFile(join(folder, name), '');
  await writeFile(join(folder, 'headgate'), '#!/bin/sh\nexit 2\n');
  await chmod(join(folder, 'headgate'), 0o755);
  // The fast tests have a PATH without the programs of the system.
  const env = { PATH: `${folder}:/usr/bin:/bin`, HEADGATE_STATE_DIR: folder };
  const [status, said] = await new Promise<[unknown, string]>((resolve) =>
    execFile('sh', [start, 'run'], { env }, (error, _, stderr) => resolve([error?.code ?? 0, stderr])),
  );
  t.is(said, '');
  t.is(status, 2);
  return folder;
}
