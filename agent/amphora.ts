// The agent as an amphora of Octavia (`amphora`): starts and stops the parts that wiring/amphora-parts.ts creates. Octavia's
// controller says what is served, by the REST API; there are no objects, no translation and no pair.

import { serveAmphora } from './answer/amphora-servers.ts';
import { messageOf } from './base/errors.ts';
import { version } from './base/version.ts';
import { compactHeap } from './host/compact-heap.ts';
import type { CurrentSettings } from './settings/current-settings.ts';
import { type AmphoraParts, amphoraParts } from './wiring/amphora-parts.ts';

/** Runs until SIGTERM or SIGINT; traffic continues without the agent unless `stopDataplaneOnExit` is set. */
export async function runAmphora(settings: CurrentSettings): Promise<number> {
  const parts = amphoraParts(settings);
  const { log, own, network, kernel, vrrp, loadBalancers, heartbeats, server } = parts;
  const { promise: stopping, resolve: stop } = Promise.withResolvers<NodeJS.Signals>();
  process
    .on('SIGHUP', () => reread(parts))
    .once('SIGTERM', stop)
    .once('SIGINT', stop);
  let address = '';
  const servers = await serveAmphora(parts, () => address);

  // The namespace first: HAProxy and keepalived run in it. Nothing is asked before what ran is there again.
  await network.restore();
  await kernel.start();
  await loadBalancers.restore();
  await vrrp.restore();
  address = await server.listen();
  await heartbeats.start();
  compactHeap();
  log.info('Headgate runs as an amphora', {
    ...{ version, amphora: own.now.amphoraId, api: address, listen: servers.address },
  });

  log.info('Stopping', { signal: await stopping });
  await servers.stopping();
  heartbeats.close();
  await server.close();
  if (settings.now.stopDataplaneOnExit) {
    await vrrp.stop();
    for (const { id } of loadBalancers.views()) await loadBalancers.stop(id);
  }
  await vrrp.close();
  await kernel.close();
  await loadBalancers.close();
  servers.close();
  return 0;
}

/** SIGHUP: reads both files of settings again. */
function reread({ settings, own, heartbeats, log }: AmphoraParts): void {
  if (settings.reread(log)) log.setLevel(settings.now.logLevel);
  try {
    own.reread();
    heartbeats.configure();
  } catch (error) {
    log.error('Cannot use the new settings of the amphora: the old ones stay in effect', {
      error: messageOf(error),
    });
  }
}
