// A benchmark in a network namespace of its own, where any address may be a pod's: the module that is named runs again
// there, in a process that goes with all that it started. Needs root, or a kernel that lets users have namespaces.

import { spawnSync } from 'node:child_process';
import type { IsolatedMessage } from './isolated-process.ts';
import { startModule } from './processes.ts';
import type { Bench, Row } from './row.ts';
import { withScratch } from './scratch.ts';

const UNSHARE = process.getuid?.() === 0 ? ['--net'] : ['--user', '--map-root-user', '--net'];

/** `module` exports `measure` (isolated-process.ts). */
export async function isolated(
  module: string,
  bench: Bench,
  wanted: ReadonlySet<string>,
): Promise<readonly Row[]> {
  if (spawnSync('unshare', [...UNSHARE, 'true']).status !== 0) {
    throw new Error(
      'Members need addresses that the API server accepts, and these a network namespace: run it as root',
    );
  }
  return withScratch(
    (scratch) =>
      new Promise<readonly Row[]>((resolve, reject) => {
        const entry = new URL('isolated-process.ts', import.meta.url);
        const args = [module, ...wanted];
        const running = startModule(scratch, 'isolated', entry, args, ['unshare', ...UNSHARE]);
        running.child.on('message', (message: IsolatedMessage) => {
          if ('said' in message) bench.say(message.said);
          else if ('rows' in message) resolve(message.rows);
          else reject(new Error(message.failed));
        });
        running.child.once('exit', () => reject(new Error(`It has ended:\n${running.said()}`)));
      }),
  );
}
