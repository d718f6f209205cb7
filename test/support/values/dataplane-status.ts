// The status of a dataplane that serves, with other facts where a test needs them.

import type { DataplaneStatus } from '../../../agent/dataplane/status.ts';

export function dataplaneStatus(facts: Partial<DataplaneStatus> = {}): DataplaneStatus {
  return {
    version: '',
    workerPid: 1,
    serving: true,
    isAway: false,
    isReloading: false,
    reloadPending: [],
    serversToDelete: 0,
    rejected: 0,
    blocked: [],
    fault: '',
    unserved: '',
    landed: 0,
    persistFault: '',
    files: [],
    maxConnections: 100,
    ...facts,
  };
}
