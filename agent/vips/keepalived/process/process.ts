// Finds, starts, signals and stops keepalived. Started by the agent it outlives it.

import type { ChildProcess } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { HeadgateError } from '../../../base/errors.ts';
import { quote } from '../../../base/quote.ts';
import { pidIn, runsWith, startDetached } from '../../../host/detached-process.ts';
import { inNamespace } from '../../../host/namespace.ts';
import { runCommand } from '../../../host/run-command.ts';
import type { KeepalivedPaths } from '../paths.ts';

export interface KeepalivedProgram {
  /** `2.2.7` */
  readonly version: string;
  /** The number of the signal that has it write what it knows. */
  readonly dumpSignal: number;
}

/** Errors: KEEPALIVED_MISSING; KEEPALIVED_VERSION where it is too old, or was built without JSON. */
export async function keepalivedProgram(executable: string): Promise<KeepalivedProgram> {
  const ask = (option: string) =>
    runCommand(executable, [option], { timeout: 10_000 }).catch((cause) => {
      const message = `Cannot run "${executable}": install keepalived 2.2.7 or newer, or set "keepalived" to its path`;
      throw new HeadgateError('KEEPALIVED_MISSING', message, { retry: 'later', cause });
    });
  const { stdout, stderr } = await ask('--version');
  const [, version, major, minor] = /Keepalived v((\d+)\.(\d+)[\d.]*)/.exec(`${stdout}${stderr}`) ?? [];
  if (version === undefined || Number(major) < 2 || (Number(major) === 2 && Number(minor) < 2)) {
    const [said = ''] = `${stderr}${stdout}`.trim().split('\n');
    const words = said === '' ? 'does not say its version' : `says ${quote(said)}`;
    const found = version === undefined ? words : `is ${version}`;
    const message = `"${executable}" ${found}: keepalived 2.2.7 or newer is needed`;
    throw new HeadgateError('KEEPALIVED_VERSION', message, { retry: 'never' });
  }
  const dumpSignal = Number((await ask('--signum=JSON')).stdout);
  if (!(dumpSignal > 0)) {
    const message = `"${executable}" was built without JSON, by which it tells its state`;
    throw new HeadgateError('KEEPALIVED_VERSION', message, { retry: 'never' });
  }
  return { version, dumpSignal };
}

/**
 * Starts keepalived and returns once it has written its pid file. Errors: KEEPALIVED_MISSING where the program cannot be
 * started, KEEPALIVED_START with its own words where it ends before.
 *
 * Realtime scheduling is asked for here and not by `vrrp_rt_priority`: keepalived 2.2.7 sets the limit of realtime
 * processor time to 0 at a reload, and where it lacks CAP_SYS_RESOURCE to raise it again the kernel kills it.
 */
export async function startKeepalived(
  executable: string,
  netns: string,
  paths: KeepalivedPaths,
): Promise<ChildProcess> {
  // What a keepalived that was killed leaves behind can keep the next one from starting.
  for (const file of [paths.pidFile, paths.vrrpPidFile]) await rm(file, { force: true });
  const words = ['-n', '-l', '-G', '-f', paths.config, '-p', paths.pidFile, '-r', paths.vrrpPidFile];
  const program = (await canBeRealtime())
    ? inNamespace(netns, 'chrt', ['--rr', '50', executable, ...words])
    : inNamespace(netns, executable, words);
  const env = { ...process.env, TMPDIR: paths.directory };
  const start = { log: paths.log, env, missing: 'KEEPALIVED_MISSING' } as const;
  const { child, ended, said } = await startDetached(program, start);
  for (const until = performance.now() + START_TIMEOUT; (await keepalivedPid(paths)) === undefined; ) {
    if (ended() !== undefined || performance.now() > until) {
      const words = (await said()).trim().slice(-2_000);
      throw new HeadgateError('KEEPALIVED_START', `keepalived does not start\n${words}`);
    }
    await delay(10);
  }
  return child;
}

const START_TIMEOUT = 5_000;

/** Asked at each start: a `no` on a host that has stalled for so long is none for ever. */
async function canBeRealtime(): Promise<boolean> {
  try {
    return (await runCommand('chrt', ['--rr', '50', 'true'], { timeout: 5_000 })).exitCode === 0;
  } catch {
    return false;
  }
}

/** The pid of keepalived's parent process, if the pid file names a process that runs keepalived with our file. Errors: as pidIn(). */
export function keepalivedPid(paths: KeepalivedPaths): Promise<number | undefined> {
  return pidIn(paths.pidFile, paths.config);
}

/** Milliseconds since a process was started; 0 where it is gone. */
export async function ageOf(pid: number): Promise<number> {
  try {
    const [uptime = 0] = (await readFile('/proc/uptime', 'utf8')).split(' ').map(Number);
    const words = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1]?.split(' ') ?? [];
    // Field 22 of proc(5), in hundredths of a second; the words begin with field 3.
    return Math.round(uptime * 1000 - Number(words[19]) * 10);
  } catch {
    return 0;
  }
}

/** What keepalived finds wrong with a file, '' where it would take it. Errors: COMMAND_FAILED. */
export async function checkConfig(executable: string, netns: string, path: string): Promise<string> {
  const [program, args] = inNamespace(netns, executable, ['-t', '-f', path]);
  const { exitCode, stdout, stderr } = await runCommand(program, args, { timeout: 10_000 });
  if (exitCode === 0) return '';
  const said = `${stderr}${stdout}`.trim().replaceAll(/\s*\n\s*/g, '; ');
  return (said || `exit status ${exitCode}`).slice(0, 500);
}

/** False where the process has ended since. */
export function signalKeepalived(pid: number, signal: NodeJS.Signals | number): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw new HeadgateError('KEEPALIVED_START', `Cannot send ${signal} to keepalived`, { cause: error });
  }
}

/** Ends it in order: it hands its addresses over to the other host first. */
export async function stopKeepalived(pid: number, { config }: KeepalivedPaths): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    if (!(await runsWith(pid, config)) || !signalKeepalived(pid, signal)) return;
    await ended(pid, config);
  }
}

/** Ends both processes at once; what they hold stays on the interfaces. Returns when the parent is gone. */
export async function endKeepalived(
  parent: number,
  child: number | undefined,
  { config }: KeepalivedPaths,
): Promise<void> {
  // The parent first: it would start another child.
  for (const pid of [parent, child])
    if (pid !== undefined && (await runsWith(pid, config))) signalKeepalived(pid, 'SIGKILL');
  await ended(parent, config);
}

async function ended(pid: number, config: string): Promise<void> {
  const until = performance.now() + END_TIMEOUT_MS;
  while (performance.now() < until && (await runsWith(pid, config))) await delay(10);
}

const END_TIMEOUT_MS = 5_000;
