// The program conntrackd: finds and starts it, and reads what it has received. A conntrackd that the agent has started
// outlives the agent.

import { rm } from 'node:fs/promises';
import { HeadgateError } from '../../base/errors.ts';
import type { DaemonProgram, StartedDaemon } from '../../host/daemon/daemon-process.ts';
import { startedWith } from '../../host/daemon/find.ts';
import { type DaemonKind, startDaemon } from '../../host/daemon/start.ts';
import { inNamespace } from '../../host/namespace.ts';
import { runCommand } from '../../host/run-command.ts';
import type { ConntrackdPaths } from './paths.ts';

const CONNTRACKD: DaemonKind = {
  name: 'conntrackd',
  missing: 'CONNTRACKD_MISSING',
  failed: 'CONNTRACKD_START',
};
const START_TIMEOUT_MS = 5_000;
const END_TIMEOUT_MS = 5_000;
const REQUEST_TIMEOUT_MS = 5_000;

/** Its version, such as `1.4.7`. Errors: CONNTRACKD_MISSING. */
export async function conntrackdVersion(executable: string): Promise<string> {
  const result = await runCommand(executable, ['-v'], { timeout: REQUEST_TIMEOUT_MS }).catch(() => undefined);
  const version = /v(\d+\.[\d.]*\d)/.exec(result?.stdout ?? '')?.[1];
  if (version !== undefined) return version;
  const message = `Cannot run "${executable}": install conntrackd, or set "conntrackd" to its path`;
  throw new HeadgateError('CONNTRACKD_MISSING', message);
}

export interface ConntrackdProgram {
  readonly conntrackd: string;
  readonly netns: string;
  /** `external`: another program, such as systemd, starts and restarts conntrackd. */
  readonly conntrackdSupervisor: 'agent' | 'external';
}

export function conntrackdProgram(
  { conntrackd, netns, conntrackdSupervisor }: ConntrackdProgram,
  paths: ConntrackdPaths,
): DaemonProgram {
  return {
    kind: CONNTRACKD,
    config: paths.config,
    find: () => findConntrackd(paths),
    start: () => startConntrackd(conntrackd, netns, paths),
    endTimeoutMs: END_TIMEOUT_MS,
    supervisorMs: conntrackdSupervisor === 'external' ? START_TIMEOUT_MS : undefined,
  };
}

/** The pid of the daemon; 0 if it does not run. Errors: those of startedWith(). */
async function findConntrackd({ config }: ConntrackdPaths): Promise<number> {
  // A request to the daemon has further words; a process that the daemon has forked has the same words.
  const found = await startedWith(
    ([program = '', flag, file, ...rest]) =>
      /(^|\/)conntrackd$/.test(program) && flag === '-C' && file === config && rest.join('') === '',
  );
  return [...found.keys()].find((pid) => !found.has(found.get(pid) ?? 0)) ?? 0;
}

/** Resolves when it answers requests. Errors: CONNTRACKD_MISSING; CONNTRACKD_START with its messages; those of startedWith(). */
async function startConntrackd(
  executable: string,
  netns: string,
  paths: ConntrackdPaths,
): Promise<StartedDaemon> {
  // A killed conntrackd leaves its lock, which would prevent the start of another.
  for (const file of [paths.lock, paths.socket]) await rm(file, { force: true });
  const { child, found } = await startDaemon(CONNTRACKD, {
    command: inNamespace(netns, executable, ['-C', paths.config]),
    log: paths.log,
    find: async () =>
      (await packetsReceived(executable, paths)) === undefined ? undefined : findConntrackd(paths),
    timeoutMs: START_TIMEOUT_MS,
    excerpt: (messages) => messages.trim().slice(-2_000),
  });
  return { child, pid: found };
}

/** The packets that the daemon has received from the peer, one each second at least; undefined if it does not answer. */
export async function packetsReceived(
  executable: string,
  paths: ConntrackdPaths,
): Promise<number | undefined> {
  const text = await request(executable, paths, ['-s', 'link']);
  const count = /(\d+) Pckts recv/.exec(text ?? '')?.[1];
  return count === undefined ? undefined : Number(count);
}

/** Sends all flows of this host to the peer: those that began while no conntrackd ran here are unknown there. */
export async function sendAll(executable: string, paths: ConntrackdPaths): Promise<void> {
  await request(executable, paths, ['-B']);
}

/** What the daemon answers; undefined if it does not. */
async function request(
  executable: string,
  { config }: ConntrackdPaths,
  words: readonly string[],
): Promise<string | undefined> {
  return runCommand(executable, ['-C', config, ...words], { timeout: REQUEST_TIMEOUT_MS }).then(
    ({ exitCode, stdout }) => (exitCode === 0 ? stdout : undefined),
    () => undefined,
  );
}
