// A benchmark in a network namespace of its own, where any address may be a pod's: the module that is named runs again
// there. Needs root, or a kernel that lets users have namespaces. Where it may, in a namespace of processes, too: then
// nothing outlives the first of them, however that ends.

import { spawnSync } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import type { IsolatedMessage } from './isolated-process.ts';
import { startModule } from './processes.ts';
import type { Bench, Row } from './row.ts';
import { withScratch } from './scratch.ts';

const NETWORK =
  process.getuid?.() === 0 ? ['--net'] : ['--user', '--map-current-user', '--keep-caps', '--net'];
const PROCESSES = ['--pid', '--fork', '--kill-child', '--mount-proc'];
/** Milliseconds for a process in there to take away what it has made. */
const CLEAN = 60_000;

/** `module` exports `measure` (isolated-process.ts). */
export function isolated(module: string, bench: Bench, wanted: ReadonlySet<string>): Promise<readonly Row[]> {
  return withScratch(async (scratch) => {
    const entry = new URL('isolated-process.ts', import.meta.url);
    const running = startModule(scratch, 'isolated', entry, [module, ...wanted], unshare());
    const { child } = running;
    const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    // A signal would reach unshare only; this is how the process hears of the end of its benchmark.
    scratch.defer(async () => {
      if (child.connected) child.disconnect();
      await Promise.race([gone, delay(CLEAN, undefined, { ref: false })]);
    });
    return new Promise<readonly Row[]>((resolve, reject) => {
      child.on('message', (message: IsolatedMessage) => {
        if ('said' in message) bench.say(message.said);
        else if ('rows' in message) resolve(message.rows);
        else reject(new Error(message.failed));
      });
      void gone.then(() => reject(new Error(`It has ended:\n${running.said()}`)));
    });
  });
}

function unshare(): readonly string[] {
  for (const flags of [[...NETWORK, ...PROCESSES], NETWORK]) {
    if (spawnSync('unshare', [...flags, 'true']).status === 0) return ['unshare', ...flags];
  }
  throw new Error(
    'Cannot make a network namespace for members with addresses that the API server accepts: run this as root',
  );
}
