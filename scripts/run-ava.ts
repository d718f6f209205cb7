// Runs AVA with the repair of ava-tap.ts and shows what it prints as it comes.
// Temporary files have a folder of their own, which goes with the run, as do processes that tests leave.

import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ProgramRun, runProgram } from './run-program.ts';

export interface AvaOptions {
  readonly env?: NodeJS.ProcessEnv;
  /** Passed tests are not shown. */
  readonly quiet?: boolean;
}

export function runAva(
  cwd: string,
  args: readonly string[],
  { env = process.env, quiet = false }: AvaOptions = {},
): Promise<ProgramRun> {
  const ava = fileURLToPath(new URL('ava-tap.ts', import.meta.url));
  const temporary = mkdtempSync(join(tmpdir(), 't-'));
  // As /tmp is: some tests run programs as other users.
  chmodSync(temporary, 0o1777);
  const lines = quiet ? withoutPassed() : (text: string) => text;
  return runProgram(process.execPath, [ava, '--tap', ...args], {
    cwd,
    env: { ...env, TMPDIR: temporary },
    onOutput: (text) => process.stdout.write(lines(text)),
    onError: (text) => process.stderr.write(text),
    afterwards: () => rmSync(temporary, { recursive: true, force: true, maxRetries: 5 }),
  });
}

/** Without lines of tests and hooks that passed; the text comes in pieces. */
function withoutPassed(): (text: string) => string {
  let begun = '';
  return (text) => {
    const lines = (begun + text).split('\n');
    begun = lines.pop() ?? '';
    return lines
      .filter((line) => !/^ok |^# .* hook for /.test(line))
      .map((line) => `${line}\n`)
      .join('');
  };
}
