// Finds, starts and stops the HAProxy master process. Started by the agent it outlives it.

import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { HeadgateError } from '../../base/errors.ts';
import { pidIn, startDetached } from '../../host/detached-process.ts';
import { inNamespace } from '../../host/namespace.ts';
import type { HaproxyPaths } from '../paths.ts';

/**
 * Starts HAProxy and returns once `isServing` says so. Errors: HAPROXY_MISSING where the program cannot be started,
 * HAPROXY_START with HAProxy's own words where it ends or is not serving before the deadline (milliseconds).
 */
export async function startHaproxy(
  executable: string,
  paths: HaproxyPaths,
  isServing: () => Promise<boolean>,
  deadline: number,
  netns = '',
): Promise<void> {
  const words = ['-W', '-S', `${paths.masterSocket},mode,600`, '-p', paths.pidFile, '-f', paths.config];
  const program = inNamespace(netns, executable, words);
  const { ended, said } = await startDetached(program, {
    log: paths.log,
    env: process.env,
    missing: 'HAPROXY_MISSING',
  });
  const until = performance.now() + deadline;
  while (!(await isServing())) {
    const end = ended();
    if (end !== undefined || performance.now() > until) {
      const why = end === undefined ? `does not serve after ${deadline} ms` : `ended with ${end}`;
      const retry = end === undefined ? 'now' : 'later';
      throw new HeadgateError('HAPROXY_START', `HAProxy ${why}\n${complaints(await said())}`, { retry });
    }
    await delay(10);
  }
}

/**
 * Without its notices, such as where it was found, and without its processes' ids, so that the same complaint is the
 * same text at the next start. From 3.1 on the master names its worker within a line as well.
 */
function complaints(said: string): string {
  const lines = said.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('[NOTICE]'));
  return lines
    .map((line) =>
      line.replace(/^(\[[A-Z]+\]) +\(\d+\) : /, '$1 : ').replace(/ worker \(\d+\) exited/, ' worker exited'),
    )
    .join('\n');
}

/** The master's pid, if the pid file names a process that runs HAProxy with our file. Errors: as pidIn(). */
export function masterPid(paths: HaproxyPaths): Promise<number | undefined> {
  return pidIn(paths.pidFile, paths.config);
}

/** Lets connections end for up to `grace` milliseconds, then stops the rest. */
export async function stopHaproxy(paths: HaproxyPaths, grace: number): Promise<void> {
  for (const [signal, patience] of [
    ['SIGUSR1', grace],
    ['SIGTERM', 2_000],
    ['SIGKILL', 2_000],
  ] as const) {
    const pid = await masterPid(paths);
    if (pid === undefined) return;
    try {
      process.kill(pid, signal);
    } catch {
      // It has ended since.
      return;
    }
    const until = performance.now() + patience;
    while (performance.now() < until && (await masterPid(paths)) !== undefined) await delay(20);
  }
}

/** Bytes of memory that a process really takes; 0 where it is gone. */
export async function residentMemory(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024;
}
