// What each virtual router says of a host. Pure.

export type VrrpRole = 'master' | 'backup' | 'fault' | 'unknown';

/** By the name of the instance, `vrrp-51`; empty where no VRRP runs. */
export type Roles = Readonly<Record<string, VrrpRole>>;

/** With what lowers the host, by the name of the instance; 1 to 255. */
export type Priorities = Readonly<Record<string, number>>;

/** Whether any VIP is on the host. */
export function isActive(roles: Roles): boolean {
  return Object.values(roles).includes('master');
}

/**
 * This host's instances of which both are master; one that the peer does not have counts where the peer is master of one
 * that is not this host's: the two do not hear each other then, whatever they are called.
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
