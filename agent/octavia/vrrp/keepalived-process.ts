// The program keepalived with a text of Octavia: in the namespace of the amphora, with its messages in a file and in the
// system's log, by the facility that Octavia sends on.

import { rm } from 'node:fs/promises';
import { sleep } from '../../base/clock.ts';
import type { DaemonProgram, StartedDaemon } from '../../host/daemon/daemon-process.ts';
import { ageOf, findDaemon, pidIn } from '../../host/daemon/find.ts';
import { type DaemonKind, startDaemon } from '../../host/daemon/start.ts';
import { sendSignal } from '../../host/daemon/stop.ts';
import { inNamespace } from '../../host/namespace.ts';
import type { VrrpPaths } from './paths.ts';

export interface KeepalivedOptions {
  /** The program. */
  readonly keepalived: string;
  readonly netns: string;
  /** The number of local0 to local7 for its messages. */
  readonly logFacility: () => number;
}

const KIND: DaemonKind = { name: 'keepalived', missing: 'KEEPALIVED_MISSING', failed: 'KEEPALIVED_START' };
const START_TIMEOUT_MS = 5_000;
const END_TIMEOUT_MS = 5_000;
/** A signal would end a younger keepalived. */
const READY_AGE_MS = 1_000;

export function keepalivedProgram(options: KeepalivedOptions, paths: VrrpPaths): DaemonProgram {
  return {
    kind: KIND,
    config: paths.config,
    // A shell that starts keepalived has the same words.
    find: () =>
      findDaemon(
        paths,
        ([program = '', ...words]) =>
          /(^|\/)(keepalived|ld-linux[^/]*)$/.test(program) &&
          words.includes(paths.config) &&
          words.includes(paths.pidFile),
      ),
    start: () => start(options, paths),
    endTimeoutMs: END_TIMEOUT_MS,
  };
}

/** Errors: KEEPALIVED_START if the agent may not signal it. */
export async function reloadKeepalived(pid: number): Promise<void> {
  await sleep(Math.max(0, READY_AGE_MS - (await ageOf(pid))));
  sendSignal(KIND, pid, 'SIGHUP');
}

async function start(
  { keepalived, netns, logFacility }: KeepalivedOptions,
  paths: VrrpPaths,
): Promise<StartedDaemon> {
  // The pid files of a killed keepalived can prevent the start of another.
  for (const file of [paths.pidFile, paths.vrrpPidFile]) await rm(file, { force: true });
  const words = ['-n', '-l', '-S', String(logFacility()), '-P', '-f', paths.config];
  const { child, found } = await startDaemon(KIND, {
    command: inNamespace(netns, keepalived, [...words, '-p', paths.pidFile, '-r', paths.vrrpPidFile]),
    env: { ...process.env, TMPDIR: paths.directory },
    log: paths.log,
    find: () => pidIn(paths.pidFile, paths.config),
    timeoutMs: START_TIMEOUT_MS,
    excerpt: (messages) => messages.trim().slice(-2_000),
  });
  return { child, pid: found };
}
