// Serves a folder of manifests and counts reloads: with the agent, or with a controller that renders, checks and reloads
// everything as soon as it can.

import { showProc } from '../../agent/haproxy/socket/master.ts';
import type { Reloads } from '../reference/full-reload-process.ts';
import { type ManifestFolder, serving, startAgent } from './agent.ts';
import { startModule } from './processes.ts';
import type { Bench } from './row.ts';
import type { Scratch } from './scratch.ts';

/** Resolves when all `count` Services are served, with a function that returns the number of reloads so far. */
export type Serve = (
  scratch: Scratch,
  folder: ManifestFolder,
  count: number,
) => Promise<() => Promise<number>>;

export function servedByAgent({ haproxy }: Bench): Serve {
  return async (scratch, folder, count) => {
    const agent = startAgent(scratch, folder.path, { haproxy });
    await serving(agent, count);
    return async () => (await showProc(agent.masterSocket)).master.reloads;
  };
}

export function servedByReloads({ haproxy }: Bench): Serve {
  return async (scratch, folder) => {
    const module = new URL('../reference/full-reload-process.ts', import.meta.url);
    const controller = startModule(scratch, 'full-reload', module, [folder.path, haproxy]);
    let total = 0;
    const reloads = async (): Promise<number> => {
      total += (await controller.ask<Reloads>({})).reloads.length;
      return total;
    };
    await reloads();
    return reloads;
  };
}
