// Runs AVA with the fixes of ava-tap.ts and prints its output at once. Removes temporary files and ends processes that
// tests leave behind.

import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ProgramRun, runProgram } from './run-program.ts';

/** The cache of compiled code, which all test files share: the same as that of bin/headgate. */
const COMPILE_CACHE = fileURLToPath(new URL('../node_modules/.cache/headgate', import.meta.url));

export interface AvaOptions {
  readonly env?: NodeJS.ProcessEnv;
  /** Prints no line for a test that passes. */
  readonly quiet?: boolean;
}

export function runAva(
  cwd: string,
  args: readonly string[],
  { env = process.env, quiet = false }: AvaOptions = {},
): Promise<ProgramRun> {
  const ava = fileURLToPath(new URL('ava-tap.ts', import.meta.url));
  const temporary = mkdtempSync(join(tmpdir(), 't-'));
  // The mode of /tmp, because some tests run programs as other users.
  chmodSync(temporary, 0o1777);
  const lines = quiet ? withoutPassed() : (text: string) => text;
  return runProgram(process.execPath, [ava, '--tap', ...args], {
    cwd,
    env: { NODE_COMPILE_CACHE: COMPILE_CACHE, ...env, TMPDIR: temporary },
    onOutput: (text) => process.stdout.write(lines(text)),
    onError: (text) => process.stderr.write(text),
    afterwards: () => rmSync(temporary, { recursive: true, force: true, maxRetries: 5 }),
  });
}

/** Removes the lines of passed tests and hooks from a text that arrives in parts. */
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
