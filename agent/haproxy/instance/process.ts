// Starts and stops HAProxy's master process, which outlives the agent.
// Why: docs/design/decisions/0027-haproxy-is-never-killed.md
// Why: docs/design/decisions/0033-haproxy-starts-plainly.md

import { readFile } from 'node:fs/promises';
import { pidIn } from '../../host/daemon/find.ts';
import { type DaemonKind, startDaemon } from '../../host/daemon/start.ts';
import { sendSignal, stopDaemon } from '../../host/daemon/stop.ts';
import { inNamespace } from '../../host/namespace.ts';
import type { InstanceFiles } from './files.ts';
import { ownProcesses } from './find-master.ts';

const HAPROXY: DaemonKind = { name: 'HAProxy', missing: 'HAPROXY_MISSING', failed: 'HAPROXY_START' };

/**
 * Starts HAProxy and resolves with the first result of `find`, which shows that it serves. Errors: HAPROXY_MISSING if the
 * program cannot be started; HAPROXY_START with HAProxy's messages if it ends or does not serve in time.
 */
export async function startHaproxy<T>(
  executable: string,
  paths: InstanceFiles,
  find: () => Promise<T | undefined>,
  timeoutMs: number,
  netns = '',
): Promise<T> {
  const { config, masterSocket, pidFile, more = [] } = paths;
  const words = ['-W', '-S', `${masterSocket},mode,600`, '-p', pidFile, '-f', config, ...more];
  const command = inNamespace(netns, executable, words);
  const start = { command, log: paths.log, find, timeoutMs, excerpt: complaints };
  return (await startDaemon(HAPROXY, start)).found;
}

/**
 * Without notices and without process ids, so that the same complaint is the same text at the next start. From 3.1 on
 * the master names its worker within a line as well.
 */
function complaints(messages: string): string {
  const lines = messages.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('[NOTICE]'));
  return lines
    .map((line) =>
      line.replace(/^(\[[A-Z]+\]) +\(\d+\) : /, '$1 : ').replace(/ worker \(\d+\) exited/, ' worker exited'),
    )
    .join('\n');
}

/** The master's pid, if the pid file names a process that runs HAProxy with this file. Errors: as pidIn(). */
export function masterPid(paths: InstanceFiles): Promise<number | undefined> {
  return pidIn(paths.pidFile, paths.config);
}

/** Lets connections end for `graceMs`, then closes the rest. Also one that has no pid file yet. */
export async function stopHaproxy(paths: InstanceFiles, graceMs: number): Promise<void> {
  await stopDaemon(HAPROXY, (await masterPid(paths)) ?? 0, paths.config, [
    { signal: 'SIGUSR1', waitMs: graceMs },
    { signal: 'SIGTERM', waitMs: 2_000 },
    { signal: 'SIGKILL', waitMs: 2_000 },
  ]);
  await killHaproxy(paths);
}

/** Ends all processes with these files at once, such as one that hangs; their number. Errors: as startedWith(). */
export async function killHaproxy(paths: InstanceFiles): Promise<number> {
  const pids = await ownProcesses(paths);
  // The master first, because it would start another worker.
  for (const pid of [...pids].sort((a, b) => a - b)) sendSignal(HAPROXY, pid, 'SIGKILL');
  return pids.length;
}

/** Bytes of memory that a process has in RAM; 0 if it is gone. */
export async function residentMemory(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024;
}
