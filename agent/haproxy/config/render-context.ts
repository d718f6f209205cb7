// The values of the host and its settings in haproxy.cfg.

import type { HaproxyPaths } from '../paths.ts';
import { namespaceConnections } from './limits.ts';
import type { SharedTables } from './shared-tables.ts';

/**
 * How long a replaced worker still accepts connections beside the new one. HAProxy before 3.1 stops the old worker before
 * it forks the new one; a longer time would let more clients with session affinity reach a worker without their entries
 * (docs/design/haproxy-versions.md).
 */
export const GRACE_MS = 50;

export interface RenderContext {
  readonly adminSocket: string;
  readonly peersSocket: string;
  readonly serverState: string;
  /** The mode of both sockets, octal. */
  readonly socketMode: string;
  readonly maxConnections: number;
  /** The connections that the listeners of one namespace may have together. */
  readonly namespaceConnections: number;
  /** 0: HAProxy's own choice. */
  readonly threads: number;
  /** Before HAProxy 3.1; 0 with listeners in mode http, because with it HAProxy does not close their idle connections. */
  readonly graceMs: number;
  /** Milliseconds. */
  readonly hardStopAfter: number;
  /** HAProxy ends a worker after this many reloads, even with connections. */
  readonly maxReloads: number;
  readonly localPeer: string;
  /** undefined if no peer shares the stick tables. */
  readonly sharedTables?: SharedTables;
  /** '': HAProxy keeps the user that starts it. */
  readonly user: string;
  readonly group: string;
  /** The unique id of an ACL, by listener name and line. */
  readonly aclId: (listener: string, line: number) => number;
}

export interface RenderSettings {
  /** 0: nine tenths of all. */
  readonly maxConnectionsPerNamespace: number;
  readonly threads: number;
  readonly hardStopAfter: number;
  readonly maxOldWorkers: number;
  readonly haproxyUser: string;
  readonly haproxyGroup: string;
}

export function renderContext(
  settings: RenderSettings,
  paths: HaproxyPaths,
  maxConnections: number,
  aclId: RenderContext['aclId'],
  {
    sharedTables,
    hasHttp = false,
  }: { readonly sharedTables?: SharedTables | undefined; readonly hasHttp?: boolean } = {},
): RenderContext {
  return {
    adminSocket: paths.adminSocket,
    peersSocket: paths.peersSocket,
    serverState: paths.serverState,
    socketMode: paths.socketMode,
    maxConnections,
    namespaceConnections: namespaceConnections(settings.maxConnectionsPerNamespace, maxConnections),
    threads: settings.threads,
    graceMs: hasHttp ? 0 : GRACE_MS,
    hardStopAfter: settings.hardStopAfter,
    maxReloads: settings.maxOldWorkers * 4,
    localPeer: sharedTables?.ownName ?? 'headgate',
    ...(sharedTables && { sharedTables }),
    user: settings.haproxyUser,
    group: settings.haproxyGroup,
    aclId,
  };
}

/** All values but the ids of ACLs, as one text; equal texts give equal global sections. */
export function globalValues({ aclId: _, ...values }: RenderContext): string {
  return JSON.stringify(values);
}
