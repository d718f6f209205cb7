// The metric of connections that are synchronised with the peer. Without the setting it has no sample.

import type { MetricRegistry } from './metric-registry.ts';

/** undefined if connections are not synchronised. */
export type ConnectionSyncState =
  | { readonly peer: string; readonly pid: number; readonly isPeerHeard: boolean }
  | undefined;

export function addConnectionSyncMetrics(registry: MetricRegistry, state: () => ConnectionSyncState): void {
  registry.gauge(
    'headgate_connection_sync_up',
    "Whether conntrackd runs and receives from the peer's",
    ['peer'],
    () => {
      const now = state();
      return now === undefined ? [] : [[{ peer: now.peer }, Number(now.pid !== 0 && now.isPeerHeard)]];
    },
  );
}
