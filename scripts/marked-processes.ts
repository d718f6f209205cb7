// Finds and ends all processes that a program has started, including daemons: they inherit a mark, a variable of their
// environment with a value that no other program has.

import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

export interface MarkedProcess {
  readonly pid: number;
  readonly command: string;
}

const KILL_AFTER_MS = 3_000;
const PAUSE_MS = 20;

/** Processes whose environment has `mark`, NAME=VALUE, without those of other users and those that have just ended. */
export function markedProcesses(mark: string): readonly MarkedProcess[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        if (!`\0${readFileSync(`/proc/${name}/environ`, 'latin1')}`.includes(`\0${mark}\0`)) return [];
        const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
        return [{ pid: Number(name), command }];
      } catch {
        return [];
      }
    });
}

/** Sends SIGTERM, and SIGKILL to those that continue. Resolves when all have ended. */
export async function endMarked(mark: string): Promise<void> {
  const killAt = performance.now() + KILL_AFTER_MS;
  const signalled = new Set<number>();
  for (let all = markedProcesses(mark); all.length > 0; all = markedProcesses(mark)) {
    const mayBeKilled = performance.now() > killAt;
    for (const { pid } of all) {
      if (mayBeKilled) send(pid, 'SIGKILL');
      else if (!signalled.has(pid)) send(pid, 'SIGTERM');
      signalled.add(pid);
    }
    await delay(PAUSE_MS);
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // The process has ended.
  }
}
