// Runs AVA with the repair of ava-tap.ts and shows what it prints as it comes.

import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** `exitCode` is null where a signal ended it. */
export function runAva(
  cwd: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<{ output: string; exitCode: number | null }> {
  return new Promise((resolve, reject) => {
    const ava = fileURLToPath(new URL('ava-tap.ts', import.meta.url));
    const child = spawn(process.execPath, [ava, '--tap', ...args], {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
      process.stdout.write(chunk);
    });
    child.on('error', reject).on('close', (code) => resolve({ output, exitCode: code }));
  });
}
