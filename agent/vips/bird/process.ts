// The program BIRD and its process: checks its version and a file, finds and starts it. It outlives the agent.

import { existsSync } from 'node:fs';
import { HeadgateError } from '../../base/errors.ts';
import { quote } from '../../base/quote.ts';
import type { DaemonProgram, StartedDaemon } from '../../host/daemon/daemon-process.ts';
import { pidIn, startedWith } from '../../host/daemon/find.ts';
import { type DaemonKind, startDaemon } from '../../host/daemon/start.ts';
import { inNamespace } from '../../host/namespace.ts';
import { runCommand } from '../../host/run-command.ts';
import type { BirdSettings } from './options.ts';
import type { BirdPaths } from './paths.ts';

const BIRD: DaemonKind = { name: 'BIRD', missing: 'BIRD_MISSING', failed: 'BIRD_START' };
const START_TIMEOUT_MS = 5_000;
const END_TIMEOUT_MS = 5_000;

/** `2.0.12`. Errors: BIRD_MISSING; BIRD_VERSION if it is too old. */
export async function birdVersion(executable: string): Promise<string> {
  const { stdout, stderr } = await runCommand(executable, ['--version'], { timeout: 10_000 }).catch(
    (cause) => {
      const message = `Cannot run "${executable}": install bird2 2.0.12 or newer, or set "bird" to its path`;
      throw new HeadgateError('BIRD_MISSING', message, { retry: 'later', cause });
    },
  );
  const output = `${stderr}${stdout}`.trim();
  const [, version, ...parts] = /BIRD version ((\d+)\.(\d+)(?:\.(\d+))?\S*)/.exec(output) ?? [];
  const [major = 0, minor = 0, patch = 0] = parts.map(Number);
  const isNew = major > 2 || (major === 2 && (minor > 0 || patch >= 12));
  if (version !== undefined && isNew) return version;
  const found = version === undefined ? `prints ${quote(output.split('\n')[0] ?? '')}` : `is ${version}`;
  const message = `"${executable}" ${found}: BIRD 2.0.12 or newer is needed`;
  throw new HeadgateError('BIRD_VERSION', message, { retry: 'never' });
}

/** The faults that BIRD finds in a file, '' if it accepts the file. Errors: COMMAND_FAILED. */
export async function checkConfig(executable: string, path: string): Promise<string> {
  const { exitCode, stdout, stderr } = await runCommand(executable, ['-p', '-c', path], { timeout: 10_000 });
  if (exitCode === 0) return '';
  return (`${stderr}${stdout}`.trim() || `exit status ${exitCode}`).slice(0, 500);
}

/** SIGTERM ends BIRD in order: it takes its routes back from the routers. */
export function birdDaemon(settings: Omit<BirdSettings, 'bgp'>, paths: BirdPaths): DaemonProgram {
  return {
    kind: BIRD,
    config: paths.config,
    find: () => findBird(paths),
    start: () => startBird(settings, paths),
    endTimeoutMs: END_TIMEOUT_MS,
    supervisorMs: settings.birdSupervisor === 'external' ? 0 : undefined,
  };
}

/** BIRD has no children, by which the parent of another daemon is known. Errors: as pidIn() and startedWith(). */
async function findBird(paths: BirdPaths): Promise<number | undefined> {
  const named = await pidIn(paths.pidFile, paths.config);
  return named ?? [...(await startedWith(isStartedWith(paths))).keys()][0];
}

async function startBird(
  { bird, netns }: Pick<BirdSettings, 'bird' | 'netns'>,
  paths: BirdPaths,
): Promise<StartedDaemon> {
  const words = ['-f', '-c', paths.config, '-s', paths.socket, '-P', paths.pidFile];
  const { child, found } = await startDaemon(BIRD, {
    command: inNamespace(netns, bird, words),
    // The agent reads its times.
    env: { ...process.env, TZ: 'UTC' },
    log: paths.log,
    find: async () => {
      const pid = await pidIn(paths.pidFile, paths.config);
      return existsSync(paths.socket) ? pid : undefined;
    },
    timeoutMs: START_TIMEOUT_MS,
    excerpt: (messages) => messages.trim().slice(-2_000),
  });
  return { child, pid: found };
}

function isStartedWith({ config, socket }: BirdPaths): (words: readonly string[]) => boolean {
  // A shell that starts BIRD has the same words.
  return ([program = '', ...words]) =>
    /(^|\/)(bird2?|ld-linux[^/]*)$/.test(program) && words.includes(config) && words.includes(socket);
}
