// Starts load-process.ts.

import { clientFlags } from './client-start.ts';
import type { LoadOrder, LoadResult } from './load-process.ts';
import { startModule } from './processes.ts';
import type { Scratch } from './scratch.ts';

/**
 * Returns a function that runs one load and resolves with its result. `within` is a command that executes the words after
 * it.
 */
export function startLoad(
  scratch: Scratch,
  within: readonly string[] = [],
): (order: LoadOrder) => Promise<LoadResult> {
  const child = startModule(
    scratch,
    'load',
    new URL('load-process.ts', import.meta.url),
    [],
    within,
    clientFlags,
  );
  return (order) => child.ask<LoadResult>(order);
}
