// Runs a program to its end, without a shell, with a timeout.

import { execFile } from 'node:child_process';
import { setPriority } from 'node:os';
import { HeadgateError } from '../base/errors.ts';

export interface CommandResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  /** Milliseconds until the program is killed. */
  readonly timeout: number;
  readonly env?: NodeJS.ProcessEnv;
  /** What the program reads from its standard input; absent: nothing, and the input stays open. */
  readonly input?: string;
  /** As in nice(1), from 0 up: other processes get the processor first. */
  readonly nice?: number;
  /** Gets the id of the process. */
  readonly onStart?: (pid: number) => void;
}

/** A non-zero exit status is a result. Errors: COMMAND_FAILED if the program cannot start or does not end in time. */
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
    const { pid, stdin } = execFile(program, args, settings, (error, stdout, stderr) => {
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
    // A program that ends before it has read all says so by its status.
    if (options.input !== undefined) stdin?.on('error', () => undefined).end(options.input);
    if (pid !== undefined && options.nice !== undefined) makeNice(pid, options.nice);
    if (pid !== undefined) options.onStart?.(pid);
  });
}

/** As in nice(1), from 0 up; a process that has ended is no error. */
export function makeNice(pid: number, nice: number): void {
  try {
    setPriority(pid, nice);
  } catch {
    // The program has ended already.
  }
}
