// Ends the BIRD of an agent before this one on a host that does not announce by BGP any more: it would continue to lead clients
// here.

import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { KeptDaemon } from '../../host/daemon/kept-daemon.ts';
import type { Log } from '../../host/log.ts';
import { localRoutes } from '../local-addresses.ts';
import { PassingTable } from '../passing/passing-table.ts';
import { renderRemoval } from '../passing/render.ts';
import { LocalRoutes } from './local-routes.ts';
import type { BirdSettings } from './options.ts';
import { birdPaths } from './paths.ts';
import { birdDaemon } from './process.ts';

/** Never rejects. Resolves at once if there is none. */
export async function endFormerBird(settings: Omit<BirdSettings, 'bgp'>, log: Log): Promise<void> {
  const paths = birdPaths(settings.runtimeDir);
  if (!existsSync(paths.config)) return;
  const { netns } = settings;
  const local = new LocalRoutes({ netns, file: paths.local, read: localRoutes(netns) });
  const former = new KeptDaemon({
    program: birdDaemon(settings, paths),
    messages: paths.log,
    text: async () => undefined,
    hooks: {
      onRemoved: async () => {
        await local.keepOnly(new Set());
        if (existsSync(paths.passing)) {
          await new PassingTable(settings.nft, netns, settings.passingTable).load(
            renderRemoval(settings.passingTable),
          );
          await rm(paths.passing, { force: true });
        }
        for (const path of Object.values(paths.vips)) await rm(path, { force: true });
        log.info('This host announces no VIP by BGP any more');
      },
    },
    onFault: (reason) => {
      if (reason !== '') log.error('Cannot end the BIRD of an agent before this one', { error: reason });
    },
    log,
  });
  await former.keep();
}
