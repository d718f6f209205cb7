// Checks what the rows of a pair require.

import { spawnSync } from 'node:child_process';

/** Errors: this machine cannot run a pair; the message names the remedy. */
export function demandPair(): void {
  if (process.getuid?.() !== 0)
    throw new Error(
      'A pair needs network namespaces, keepalived and its realtime priority: run the benchmark as root',
    );
  if (spawnSync('keepalived', ['--version']).error !== undefined)
    throw new Error('keepalived is not installed');
}
