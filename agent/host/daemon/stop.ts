// Signals a daemon and stops it.

import { sleep } from '../../base/clock.ts';
import { HeadgateError } from '../../base/errors.ts';
import { runsWith } from './find.ts';
import type { DaemonKind } from './start.ts';

/** A signal, and how long the process may take to end after it. */
export interface StopStep {
  readonly signal: NodeJS.Signals;
  readonly waitMs: number;
}

const POLL_INTERVAL_MS = 10;

/** Takes one step after the other until the process with this configuration file is gone. Errors: as sendSignal(). */
export async function stopDaemon(
  kind: DaemonKind,
  pid: number,
  config: string,
  steps: readonly StopStep[],
): Promise<void> {
  for (const { signal, waitMs } of steps) {
    if (!(await runsWith(pid, config)) || !sendSignal(kind, pid, signal)) return;
    const until = performance.now() + waitMs;
    while (performance.now() < until && (await runsWith(pid, config))) await sleep(POLL_INTERVAL_MS);
  }
}

/** False if the process is gone. Errors: `failed` if the agent may not signal it. */
export function sendSignal(kind: DaemonKind, pid: number, signal: NodeJS.Signals | number): boolean {
  try {
    return process.kill(pid, signal);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw new HeadgateError(kind.failed, `Cannot send ${signal} to ${kind.name}`, { cause });
  }
}
