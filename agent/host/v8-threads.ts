// V8's own threads, which compile and collect beside the agent: traffic goes before them.

import { readdirSync, readFileSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';

/**
 * How much nicer than the agent, as nice(1) counts. On two processors two of these threads keep both from whoever has a
 * connection to serve, seen for 2.7 ms (docs/design/decisions.md). The agent itself, which tells HAProxy what has changed,
 * stays as it is.
 */
const NICER = 10;
const NICEST = 19;
/** As Node names them. */
const NAME = 'V8Worker';

/** Of this process; takes no right. Does nothing where the threads have other names, or where there is no /proc. */
export function putV8ThreadsLast(): void {
  const tasks = '/proc/self/task';
  try {
    const nice = Math.min(getPriority() + NICER, NICEST);
    for (const id of readdirSync(tasks)) {
      if (readFileSync(`${tasks}/${id}/comm`, 'utf8').trim() === NAME) setPriority(Number(id), nice);
    }
  } catch {
    // Requests are slower at times, nothing else.
  }
}
