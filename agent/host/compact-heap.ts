// Returns the memory that the start used for reading and parsing to the system. V8 does so only when memory is short.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Synchronous: the event loop stops for the time of a full collection. */
export function compactHeap(): void {
  // Not on the command line, where the flag disables Node's compile cache.
  setFlagsFromString('--expose-gc');
  const collect: NodeJS.GCFunction = runInNewContext('gc');
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
