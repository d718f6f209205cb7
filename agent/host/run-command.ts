// Runs a program to its end, without a shell, with a deadline.

import { execFile } from 'node:child_process';
import { setPriority } from 'node:os';
import { HeadgateError } from '../base/errors.ts';

export interface CommandResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  /** Milliseconds. */
  readonly timeout: number;
  readonly env?: NodeJS.ProcessEnv;
  /** As nice(1) counts, from 0 up: others come first where processors are few. */
  readonly nice?: number;
}

/** A non-zero exit is a result; a program that cannot be started or does not end in time is COMMAND_FAILED. */
export function runCommand(
  program: string,
  args: readonly string[],
  options: RunOptions,
): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    const settings = {
      timeout: options.timeout,
      env: options.env ?? process.env,
      maxBuffer: 16 * 1024 * 1024,
      killSignal: 'SIGKILL' as const,
    };
    const { pid } = execFile(program, args, settings, (error, stdout, stderr) => {
      if (error === null) resolve({ exitCode: 0, stdout, stderr });
      else if (typeof error.code === 'number') resolve({ exitCode: error.code, stdout, stderr });
      else {
        const why = error.killed ? `did not end within ${options.timeout} ms` : 'cannot be started';
        reject(
          new HeadgateError('COMMAND_FAILED', `Program "${program}" ${why}`, {
            retry: 'later',
            cause: error,
          }),
        );
      }
    });
    if (pid !== undefined && options.nice !== undefined) makeNice(pid, options.nice);
  });
}

function makeNice(pid: number, nice: number): void {
  try {
    setPriority(pid, nice);
  } catch {
    // It has ended already.
  }
}
