// Selects the VIPs that keepalived may have. keepalived removes its addresses on a backup, so an address of the host
// itself must not be a VIP. Pure.

import type { HostAddress } from './host-addresses.ts';
import { isSingle } from './host-addresses.ts';
import type { VrrpSettings } from './vrrp.ts';

export interface Refused {
  readonly address: string;
  /** As half a sentence. */
  readonly reason: string;
  /** False: the address is served, but stays on this host. True: this host cannot have it. */
  readonly isUnavailable: boolean;
}

/** `held` are the addresses that keepalived has put on the host, or may have. `hasV6`: the interface can have IPv6 addresses. */
export function usableVips(
  vips: Iterable<string>,
  vrrp: VrrpSettings,
  host: readonly HostAddress[],
  held: ReadonlySet<string>,
  hasV6 = true,
): { readonly usable: readonly string[]; readonly refused: readonly Refused[] } {
  const own = new Map<string, string>();
  for (const each of host) {
    if (!held.has(each.address) || !isSingle(each))
      own.set(each.address, `it is this host's own, on ${each.interface}`);
  }
  for (const peer of vrrp.peers) own.set(peer, 'it is the address of another host of the pair');
  own.set(vrrp.address, "it is this host's own, for VRRP");
  const anchors = new Set(vrrp.instances.flatMap(({ anchors }) => anchors));
  const usable: string[] = [];
  const refused: Refused[] = [];
  for (const address of vips) {
    // An anchor moves with its instance without being a VIP.
    if (anchors.has(address)) continue;
    if (address.includes(':') && !hasV6) {
      const reason = `IPv6 is off on ${vrrp.interface} (sysctl net.ipv6.conf.${vrrp.interface}.disable_ipv6), or this host has none`;
      refused.push({ address, reason, isUnavailable: true });
      continue;
    }
    const reason = own.get(address) ?? (isReachable(address) ? undefined : 'no other host can reach it');
    if (reason === undefined) usable.push(address);
    else refused.push({ address, reason, isUnavailable: false });
  }
  return { usable, refused };
}

/** False for loopback, link-local, unspecified and multicast addresses, which no network of both hosts has. */
function isReachable(address: string): boolean {
  if (address.includes(':')) return !/^(::1?|f[ef].*)$/.test(address) || /^fe[c-f]/.test(address);
  return !/^(0|127|169\.254|22[4-9]|23\d|24\d|25[0-5])\./.test(address);
}
