// What HAProxy finds in its environment, shown by a program in its place that tells it and ends.

import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { haproxyPaths, haproxyVariables, startHaproxy } from '../../../../agent/haproxy/process/process.ts';

test.serial('startHaproxy() gives HAProxy its variables', async (t) => {
  const said = await toldVariables(t);
  for (const [name, value] of Object.entries(haproxyVariables)) t.true(said.includes(`${name}=${value}\n`));
});

test.serial("startHaproxy() leaves variables that the agent's own environment has as they are", async (t) => {
  const before = process.env.GLIBC_TUNABLES;
  process.env.GLIBC_TUNABLES = 'glibc.malloc.arena_max=1';
  t.teardown(() => {
    if (before === undefined) delete process.env.GLIBC_TUNABLES;
    else process.env.GLIBC_TUNABLES = before;
  });
  const said = await toldVariables(t);
  t.true(said.includes('GLIBC_TUNABLES=glibc.malloc.arena_max=1\n'));
  t.true(said.includes(`HAPROXY_MWORKER=${haproxyVariables.HAPROXY_MWORKER}\n`));
});

async function toldVariables(t: ExecutionContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'hg-process-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const program = join(directory, 'program');
  await writeFile(program, '#!/bin/sh\nenv\necho\n');
  await chmod(program, 0o755);
  const paths = haproxyPaths(directory, directory);
  await mkdir(join(directory, 'haproxy'));
  const error = await t.throwsAsync(startHaproxy(program, paths, async () => false, 10_000));
  return error.message;
}
