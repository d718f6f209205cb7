// The status of the HAProxy dataplane, from its parts.

import type { DataplaneStatus } from '../dataplane/status.ts';
import type { HaproxyParts } from './parts.ts';

export function statusOf(parts: HaproxyParts): DataplaneStatus {
  const { active, arbiter, quarantine, supervisor, reloader, monitor, persister, globalSection, paths } =
    parts;
  const worker = active.worker?.runtime.worker;
  return {
    version: worker?.version.text ?? '',
    workerPid: worker?.pid ?? 0,
    serving: worker !== undefined,
    isAway: active.isAway,
    isReloading: arbiter.isReloading,
    reloadPending: [...arbiter.pending],
    serversToDelete: active.serversToDelete,
    rejected: quarantine.rejected,
    blocked: quarantine.blocked.map(({ address, port, reason }) => `${address} port ${port}: ${reason}`),
    fault:
      (worker === undefined ? supervisor.fault : '') ||
      monitor.fault ||
      reloader.fault ||
      globalSection.fault,
    unserved: '',
    landed: 0,
    persistFault: persister.fault,
    files: [{ path: paths.config, writtenAt: persister.writtenAt, fault: persister.fault }],
    maxConnections: globalSection.maxConnections,
  };
}
