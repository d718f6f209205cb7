// Starts the process of load-process.ts.

import type { LoadOrder, LoadResult } from './load-process.ts';
import { startModule } from './processes.ts';
import type { Scratch } from './scratch.ts';

/**
 * One thread, and nothing to be collected while it measures: others would take processors from what is measured, with
 * the same priority where it has a higher one.
 */
const FLAGS = ['--single-threaded', '--min-semi-space-size=64', '--max-semi-space-size=64'];

/**
 * The function that it returns puts one load on and gives its result. `within`: a command that becomes what follows it.
 */
export function startLoad(
  scratch: Scratch,
  within: readonly string[] = [],
): (order: LoadOrder) => Promise<LoadResult> {
  const child = startModule(scratch, 'load', new URL('load-process.ts', import.meta.url), [], within, FLAGS);
  return (order) => child.ask<LoadResult>(order);
}
