// What the API takes for an AddressClaim and for the status of an AddressPool. Pure.

import type { AddressClaim } from './address-claim.ts';
import type { AddressPool } from './address-pool.ts';
import { ADDRESS_API_VERSION } from './object-names.ts';

/** The whole object, to create it or to replace the one of that version; without a version, whichever is there. */
export function claimManifest(claim: AddressClaim, resourceVersion = ''): Readonly<Record<string, unknown>> {
  const { name, address, family, pool, service, serviceUID, sharingKey, ports, reserved, namespace } = claim;
  return {
    apiVersion: ADDRESS_API_VERSION,
    kind: 'AddressClaim',
    metadata: { name, ...(resourceVersion === '' ? {} : { resourceVersion }) },
    spec: {
      address,
      family: family === 'v4' ? 'IPv4' : 'IPv6',
      ...filled({ pool, service, serviceUID, sharingKey, namespace }),
      ...(ports.length === 0 ? {} : { ports: ports.map(({ protocol, port }) => ({ protocol, port })) }),
      ...(claim.since === 0 ? {} : { since: new Date(claim.since).toISOString() }),
      ...(claim.heldUntil === 0 ? {} : { heldUntil: new Date(claim.heldUntil).toISOString() }),
      ...(reserved ? { reserved } : {}),
    },
  };
}

/** Addresses of one family: how many the pool has, and what has become of them. */
export interface AddressCount {
  readonly total: bigint;
  readonly free: bigint;
  readonly used: bigint;
  readonly held: bigint;
  readonly conflicting: bigint;
}

/** What is wrong with a pool. */
export interface PoolFault {
  /** `Invalid`: it cannot be read; what it was before, if it was anything, counts. */
  readonly state: 'Conflicting' | 'Invalid';
  readonly message: string;
}

/**
 * The `status` of an AddressPool, as all of what a server-side apply of the status owns. Numbers are texts, since an
 * IPv6 pool has more addresses than an int64 can count.
 * The UID makes it another one for a pool that was made anew, and keeps what was meant for the old one from it.
 */
export function poolStatusManifest(
  pool: AddressPool,
  counts: { readonly v4: AddressCount; readonly v6: AddressCount },
  fault: PoolFault | undefined,
): Readonly<Record<string, unknown>> {
  return {
    apiVersion: ADDRESS_API_VERSION,
    kind: 'AddressPool',
    metadata: { name: pool.name, uid: pool.uid },
    status: {
      ...(fault ?? { state: pool.draining ? 'Draining' : 'Active' }),
      ipv4: texts(counts.v4),
      ipv6: texts(counts.v6),
    },
  };
}

/** Of a pool that has never been understood. */
export function unreadPoolManifest(name: string, fault: PoolFault): Readonly<Record<string, unknown>> {
  return { apiVersion: ADDRESS_API_VERSION, kind: 'AddressPool', metadata: { name }, status: { ...fault } };
}

function texts({ total, free, used, held, conflicting }: AddressCount): Readonly<Record<string, string>> {
  return {
    total: String(total),
    free: String(free),
    used: String(used),
    held: String(held),
    conflicting: String(conflicting),
  };
}

function filled(fields: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(fields).filter(([, text]) => text !== ''));
}
