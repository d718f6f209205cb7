// Between which addresses the two hosts of a pair synchronise connections: those of VRRP, because conntrackd runs in the
// network namespace of the VIPs. Pure.

import { HeadgateError } from '../../base/errors.ts';

export interface SyncSettings {
  readonly connectionSync: boolean;
  readonly connectionSyncPort: number;
  readonly vrrp:
    | { readonly interface: string; readonly address: string; readonly peers: readonly string[] }
    | undefined;
}

export interface SyncLink {
  readonly interface: string;
  readonly address: string;
  readonly peer: string;
  /** The port of UDP, on both hosts. */
  readonly port: number;
}

/** undefined if connections are not synchronised. Errors: SETTINGS_INVALID. */
export function syncLink({
  connectionSync,
  connectionSyncPort: port,
  vrrp,
}: SyncSettings): SyncLink | undefined {
  if (!connectionSync) return undefined;
  const [peer, ...others] = vrrp?.peers ?? [];
  if (vrrp === undefined || peer === undefined || others.length > 0) {
    const has = vrrp === undefined ? 'is not set' : `has ${vrrp.peers.length} peers`;
    const message = `Cannot use these settings:\n  connectionSync: It needs "vrrp" with one peer, but "vrrp" ${has}`;
    throw new HeadgateError('SETTINGS_INVALID', message, { retry: 'never' });
  }
  return { interface: vrrp.interface, address: vrrp.address, peer, port };
}
