// The VRRP roles and priorities of a host. Pure.

export type VrrpRole = 'master' | 'backup' | 'fault' | 'unknown';

/** By the name of the instance, `vrrp-51`; empty if no VRRP runs. */
export type Roles = Readonly<Record<string, VrrpRole>>;

/** After all that lowers the host, by the name of the instance; 1 to 255. */
export type Priorities = Readonly<Record<string, number>>;

/** The names of the instances of which the host is master. */
export function masterOf(roles: Roles): readonly string[] {
  return Object.keys(roles).filter((name) => roles[name] === 'master');
}

/** Whether any VIP is on the host. */
export function isActive(roles: Roles): boolean {
  return Object.values(roles).includes('master');
}

/**
 * This host's instances of which both hosts are master. If the peer is master of an instance that this host does not
 * have, the hosts do not receive each other's advertisements, and each instance that the peer does not have counts.
 */
export function contested(own: Roles, peer: Roles): readonly string[] {
  const hasForeign = Object.keys(peer).some((name) => peer[name] === 'master' && own[name] === undefined);
  return Object.keys(own).filter((name) => {
    if (own[name] !== 'master') return false;
    return peer[name] === 'master' || (peer[name] === undefined && hasForeign);
  });
}

/** Whether both have the same virtual routers. */
export function areAlike(own: Roles, peer: Roles): boolean {
  const names = Object.keys(own);
  return names.length === Object.keys(peer).length && names.every((name) => peer[name] !== undefined);
}
