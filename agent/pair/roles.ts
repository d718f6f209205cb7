// What each virtual router says of a host. Pure.

export type VrrpRole = 'master' | 'backup' | 'fault' | 'unknown';

/** By the name of the instance, `vrrp-51`; empty where no VRRP runs. */
export type Roles = Readonly<Record<string, VrrpRole>>;

/** Whether any VIP is on the host. */
export function isActive(roles: Roles): boolean {
  return Object.values(roles).includes('master');
}

/** The instances of which both are master. */
export function contested(own: Roles, peer: Roles): readonly string[] {
  return Object.keys(own).filter((name) => own[name] === 'master' && peer[name] === 'master');
}
