// What HAProxy finds when it is started: its environment, shown by a program in its place that tells it and ends, and
// its table of descriptors, which the kernel shows.

import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import ava, { type ExecutionContext } from 'ava';
import { fileLimit } from '../../../../agent/haproxy/config/limits.ts';
import { haproxyVariables } from '../../../../agent/haproxy/process/haproxy-variables.ts';
import {
  descriptorsWithin,
  haproxyPaths,
  startHaproxy,
  stopHaproxy,
} from '../../../../agent/haproxy/process/process.ts';
import { askOnce } from '../../../../agent/haproxy/socket/ask-once.ts';
import { reload, showProc } from '../../../../agent/haproxy/socket/master.ts';
import { requires } from '../../../support/basics/requirements.ts';
import { haproxyExecutable } from '../../../support/haproxy/haproxy.ts';

const test = requires(ava, { haproxy: true });

test.serial('startHaproxy() gives HAProxy its variables', async (t) => {
  const said = await toldVariables(t);
  for (const [name, value] of Object.entries(haproxyVariables())) t.true(said.includes(`${name}=${value}\n`));
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
  t.true(said.includes('HAPROXY_MWORKER=1\n'));
});

test('descriptorsWithin() asks for no more than half of the descriptors that may be open', (t) => {
  t.is(descriptorsWithin(524_288), 8_192);
  t.is(descriptorsWithin(1_024), 512);
});

test.serial('A program is started also where few files may be open', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'hg-process-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const module = new URL('../../../../agent/host/detached-process.ts', import.meta.url);
  const script = `const { startDetached } = await import('${module}');
    const options = { log: '${join(directory, 'log')}', env: {}, missing: 'HAPROXY_MISSING' };
    await startDetached(['true', []], { ...options, descriptors: ${descriptorsWithin(256)} });`;
  const args = ['--nofile=256:256', process.execPath, '--input-type=module', '--eval', script];
  await t.notThrowsAsync(promisify(execFile)('prlimit', args));
});

test.serial('startHaproxy() leaves each worker room for descriptors, also those that follow', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'hg-process-'));
  const paths = haproxyPaths(directory, directory);
  await mkdir(join(directory, 'haproxy'));
  const global = `global\n  maxconn 100\n  stats socket ${paths.adminSocket} mode 600 level admin\n`;
  const listen = `listen a\n  mode tcp\n  timeout client 1s\n  bind unix@${join(directory, 'a')}\n`;
  await writeFile(paths.config, global + listen);
  t.teardown(async () => {
    await stopHaproxy(paths, 0);
    await rm(directory, { recursive: true });
  });
  const workers = (): Promise<readonly number[]> =>
    showProc(paths.masterSocket).then(
      ({ workers: all }) => all.map(({ pid }) => pid),
      () => [],
    );
  // From 3.1 on the master names a worker that is yet to read the file, and answers no order to reload until then.
  const answers = (): Promise<boolean> =>
    askOnce(paths.adminSocket, 'show info').then(
      () => true,
      () => false,
    );
  const isServing = async (): Promise<boolean> => (await workers()).length > 0 && (await answers());
  await startHaproxy(haproxyExecutable, paths, isServing, 30_000);
  const room = descriptorsWithin(fileLimit());
  t.true((await tableOf((await workers())[0])) >= room);
  const { workerPid } = await reload(paths.masterSocket);
  t.true((await tableOf(workerPid)) >= room);
});

/** How many descriptors fit into the table of a process. */
async function tableOf(pid = 0): Promise<number> {
  return Number(/^FDSize:\s+(\d+)$/m.exec(await readFile(`/proc/${pid}/status`, 'latin1'))?.[1]);
}

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
