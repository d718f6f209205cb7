// Starts the process of load-process.ts.

import type { LoadOrder, LoadResult } from './load-process.ts';
import { startModule } from './processes.ts';
import type { Scratch } from './scratch.ts';

/** The function that it returns puts one load on and gives its result. */
export function startLoad(scratch: Scratch): (order: LoadOrder) => Promise<LoadResult> {
  const child = startModule(scratch, 'load', new URL('load-process.ts', import.meta.url));
  return (order) => child.ask<LoadResult>(order);
}
