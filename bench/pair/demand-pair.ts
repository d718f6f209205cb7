// What the rows of a pair cannot be measured without.

import { spawnSync } from 'node:child_process';

/** Throws, with what is to be done, where this machine cannot run a pair. */
export function demandPair(): void {
  if (process.getuid?.() !== 0)
    throw new Error(
      'A pair needs network namespaces, keepalived and its realtime priority: run this as root',
    );
  if (spawnSync('keepalived', ['--version']).error !== undefined)
    throw new Error('keepalived is not installed');
}
