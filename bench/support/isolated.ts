// Runs a benchmark's module again in its own network namespace, where a pod can have any address. Needs root, or a kernel
// that allows namespaces to users. Uses a PID namespace too if it can: the kernel then ends all its processes with the
// first.

import { spawnSync } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import type { IsolatedMessage } from './isolated-process.ts';
import { startModule } from './processes.ts';
import type { Bench } from './row.ts';
import { withScratch } from './scratch.ts';

const NETWORK =
  process.getuid?.() === 0 ? ['--net'] : ['--user', '--map-current-user', '--keep-caps', '--net'];
const PROCESSES = ['--pid', '--fork', '--kill-child', '--mount-proc'];
/** For the isolated process to remove what it has made. */
const CLEAN_MS = 60_000;

/** `module` exports `measure` (isolated-process.ts). */
export function isolated(module: string, bench: Bench, selected: ReadonlySet<string>): Promise<void> {
  return withScratch(async (scratch) => {
    const entry = new URL('isolated-process.ts', import.meta.url);
    const running = startModule(scratch, 'isolated', entry, [module, ...selected], unshare());
    const { child } = running;
    const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    // A signal would reach only unshare, so the end of the channel tells the process to stop.
    scratch.defer(async () => {
      if (child.connected) child.disconnect();
      await Promise.race([gone, delay(CLEAN_MS, undefined, { ref: false })]);
    });
    return new Promise<void>((resolve, reject) => {
      child.on('message', (message: IsolatedMessage) => {
        if ('progress' in message) bench.report(message.progress);
        else if ('rows' in message) bench.measured(...message.rows);
        else if ('isOver' in message) resolve();
        else reject(new Error(message.failed));
      });
      void gone.then(() => reject(new Error(`The isolated process has ended:\n${running.output()}`)));
    });
  });
}

function unshare(): readonly string[] {
  for (const flags of [[...NETWORK, ...PROCESSES], NETWORK]) {
    if (spawnSync('unshare', [...flags, 'true']).status === 0) return ['unshare', ...flags];
  }
  throw new Error('Cannot make a network namespace: run the benchmark as root');
}
