// The program keepalived and its processes: checks a file, finds, starts, signals and kills. A keepalived that the agent
// has started outlives the agent.

import { readFile, rm, stat } from 'node:fs/promises';
import { HeadgateError } from '../../../base/errors.ts';
import { quote } from '../../../base/quote.ts';
import type { DaemonProgram, StartedDaemon } from '../../../host/daemon/daemon-process.ts';
import { ageOf, findDaemon, pidIn, startedWith } from '../../../host/daemon/find.ts';
import { type DaemonKind, startDaemon } from '../../../host/daemon/start.ts';
import { sendSignal, stopDaemon } from '../../../host/daemon/stop.ts';
import { inNamespace } from '../../../host/namespace.ts';
import { runCommand } from '../../../host/run-command.ts';
import type { KeepalivedSettings } from '../options.ts';
import type { KeepalivedPaths } from '../paths.ts';

const KEEPALIVED: DaemonKind = {
  name: 'keepalived',
  missing: 'KEEPALIVED_MISSING',
  failed: 'KEEPALIVED_START',
};
const START_TIMEOUT_MS = 5_000;
const END_TIMEOUT_MS = 5_000;
/** A second keepalived ends within this time if it finds the pid files of the first. */
const SECOND_START_MS = 3_000;

export interface KeepalivedProgram {
  /** `2.2.7` */
  readonly version: string;
  /** The number of the signal that makes keepalived write its state to a file. */
  readonly dumpSignal: number;
  /** It has `auth_hmac` with every mode. */
  readonly canAuthenticate: boolean;
}

/** Errors: KEEPALIVED_MISSING; KEEPALIVED_VERSION if it is too old, or built without JSON. */
export async function keepalivedProgram(executable: string): Promise<KeepalivedProgram> {
  const run = (option: string) =>
    runCommand(executable, [option], { timeout: 10_000 }).catch((cause) => {
      const message = `Cannot run "${executable}": install keepalived 2.2.7 or newer, or set "keepalived" to its path`;
      throw new HeadgateError('KEEPALIVED_MISSING', message, { retry: 'later', cause });
    });
  const { stdout, stderr } = await run('--version');
  const output = `${stdout}${stderr}`;
  const [, version, major, minor] = /Keepalived v((\d+)\.(\d+)[\d.]*)/.exec(output) ?? [];
  if (version === undefined || Number(major) < 2 || (Number(major) === 2 && Number(minor) < 2)) {
    const [first = ''] = `${stderr}${stdout}`.trim().split('\n');
    const fault = first === '' ? 'prints no version' : `prints ${quote(first)}`;
    const found = version === undefined ? fault : `is ${version}`;
    const message = `"${executable}" ${found}: keepalived 2.2.7 or newer is needed`;
    throw new HeadgateError('KEEPALIVED_VERSION', message, { retry: 'never' });
  }
  const dumpSignal = Number((await run('--signum=JSON')).stdout);
  if (!(dumpSignal > 0)) {
    const message = `"${executable}" was built without JSON, in which it reports its state`;
    throw new HeadgateError('KEEPALIVED_VERSION', message, { retry: 'never' });
  }
  return { version, dumpSignal, canAuthenticate: canAuthenticate(version, output) };
}

/** `output`: of `--version`, with the options it was built with. */
export function canAuthenticate(version: string, output: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  const isNew = major > 2 || (major === 2 && (minor > 4 || (minor === 4 && patch >= 2)));
  return isNew && /\bVRRP_AUTH\b/.test(output);
}

/** SIGTERM ends keepalived in order: it hands its addresses over to the other host first. */
export function keepalivedDaemon(
  settings: Pick<KeepalivedSettings, 'keepalived' | 'netns' | 'keepalivedSupervisor'>,
  paths: KeepalivedPaths,
): DaemonProgram {
  return {
    kind: KEEPALIVED,
    config: paths.config,
    find: () => findKeepalived(paths),
    start: () => startKeepalived(settings.keepalived, settings.netns, paths),
    endTimeoutMs: END_TIMEOUT_MS,
    supervisorMs: settings.keepalivedSupervisor === 'external' ? 0 : undefined,
  };
}

/** The faults that keepalived finds in a file, '' if it accepts the file. Errors: COMMAND_FAILED. */
export async function checkConfig(executable: string, netns: string, path: string): Promise<string> {
  const [program, args] = inNamespace(netns, executable, ['-t', '-f', path]);
  const { exitCode, stdout, stderr } = await runCommand(program, args, { timeout: 10_000 });
  if (exitCode === 0) return '';
  const messages = `${stderr}${stdout}`.trim().replaceAll(/\s*\n\s*/g, '; ');
  return (messages || `exit status ${exitCode}`).slice(0, 500);
}

/**
 * Starts keepalived and resolves with its pid when its pid file is written. Errors: KEEPALIVED_MISSING if the program
 * cannot be started; KEEPALIVED_START with keepalived's messages if it ends before, or does not write the file in time.
 *
 * Realtime scheduling is set here and not by `vrrp_rt_priority`: keepalived 2.2.7 sets the limit of realtime processor
 * time to 0 at a reload, and without CAP_SYS_RESOURCE, with which it could raise the limit, the kernel kills it.
 */
async function startKeepalived(
  executable: string,
  netns: string,
  paths: KeepalivedPaths,
): Promise<StartedDaemon> {
  // The pid files of a killed keepalived can prevent the start of another.
  for (const file of [paths.pidFile, paths.vrrpPidFile]) await rm(file, { force: true });
  const words = ['-n', '-l', '-G', '-f', paths.config, '-p', paths.pidFile, '-r', paths.vrrpPidFile];
  const command = (await canBeRealtime())
    ? inNamespace(netns, 'chrt', ['--rr', '50', executable, ...words])
    : inNamespace(netns, executable, words);
  const { child, found } = await startDaemon(KEEPALIVED, {
    command,
    env: { ...process.env, TMPDIR: paths.directory },
    log: paths.log,
    find: () => keepalivedPid(paths),
    timeoutMs: START_TIMEOUT_MS,
    excerpt: (messages) => messages.trim().slice(-2_000),
  });
  return { child, pid: found };
}

/** Checked at each start, because a busy host can fail the check once. */
async function canBeRealtime(): Promise<boolean> {
  try {
    return (await runCommand('chrt', ['--rr', '50', 'true'], { timeout: 5_000 })).exitCode === 0;
  } catch {
    return false;
  }
}

/** The pid of the parent process by its pid file alone, which is a quick check. Errors: as pidIn(). */
export function keepalivedPid(paths: KeepalivedPaths): Promise<number | undefined> {
  return pidIn(paths.pidFile, paths.config);
}

/** The pid of the parent process; undefined if keepalived does not run. Errors: as findDaemon(). */
export function findKeepalived(paths: KeepalivedPaths): Promise<number | undefined> {
  return findDaemon(paths, isStartedWith(paths));
}

/** The process that speaks VRRP, which is the only child of the parent process; undefined if there is none. */
export async function vrrpProcess(parent: number): Promise<number | undefined> {
  const children = await readFile(`/proc/${parent}/task/${parent}/children`, 'utf8').catch(() => '');
  const pid = Number.parseInt(children, 10);
  return pid > 0 ? pid : undefined;
}

/**
 * The processes of another keepalived than `parent`, in its network namespace and with the same files; none that has
 * just started. Errors: as startedWith().
 */
export async function secondKeepalived(paths: KeepalivedPaths, parent: number): Promise<readonly number[]> {
  const found = await startedWith(isStartedWith(paths));
  const network = await networkOf(`/proc/${parent}/ns/net`);
  const second: number[] = [];
  for (const [pid, itsParent] of found) {
    if (pid === parent || itsParent === parent) continue;
    if ((await networkOf(`/proc/${pid}/ns/net`)) === network && (await ageOf(pid)) >= SECOND_START_MS)
      second.push(pid);
  }
  return second;
}

/** The inode number that identifies the network namespace with this path; 0 if it is gone. */
export function networkOf(path: string): Promise<number> {
  return stat(path).then(
    ({ ino }) => ino,
    () => 0,
  );
}

function isStartedWith({ config, pidFile }: KeepalivedPaths): (words: readonly string[]) => boolean {
  // A shell that starts keepalived has the same words; the loader of a keepalived with libraries of its own is keepalived.
  return ([program = '', ...words]) =>
    /(^|\/)(keepalived|ld-linux[^/]*)$/.test(program) && words.includes(config) && words.includes(pidFile);
}

/** False if the process is gone. Errors: KEEPALIVED_START if the agent may not signal it. */
export function signalKeepalived(pid: number, signal: NodeJS.Signals | number): boolean {
  return sendSignal(KEEPALIVED, pid, signal);
}

/** Kills the parent and the child; their addresses stay on the interfaces. Errors: as signalKeepalived(). */
export async function killKeepalived(
  parent: number,
  child: number | undefined,
  { config }: KeepalivedPaths,
): Promise<void> {
  // The parent first, because it would start another child.
  for (const pid of [parent, child ?? 0])
    await stopDaemon(KEEPALIVED, pid, config, [{ signal: 'SIGKILL', waitMs: END_TIMEOUT_MS }]);
}
