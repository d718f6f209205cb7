// Starts the process of load-process.ts.

import { clientFlags } from './client-start.ts';
import type { LoadOrder, LoadResult } from './load-process.ts';
import { startModule } from './processes.ts';
import type { Scratch } from './scratch.ts';

/**
 * The function that it returns puts one load on and gives its result. `within`: a command that becomes what follows it.
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
