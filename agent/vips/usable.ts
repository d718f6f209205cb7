// Which VIPs keepalived may be given: it takes an address away when it becomes backup, which must never happen to an
// address by which this host itself is reached. Pure.

import type { HostAddress } from './host-addresses.ts';
import { isSingle } from './host-addresses.ts';
import type { VrrpSettings } from './vrrp.ts';

export interface Refused {
  readonly address: string;
  /** As half a sentence. */
  readonly reason: string;
}

/** `ours` are the addresses that keepalived has put on the host, or may have. */
export function usableVips(
  vips: Iterable<string>,
  vrrp: VrrpSettings,
  host: readonly HostAddress[],
  ours: ReadonlySet<string>,
): { readonly usable: readonly string[]; readonly refused: readonly Refused[] } {
  const own = new Map<string, string>();
  for (const each of host) {
    if (!ours.has(each.address) || !isSingle(each))
      own.set(each.address, `it is this host's own, on ${each.interface}`);
  }
  for (const peer of vrrp.peers) own.set(peer, 'it is the address of another host of the pair');
  own.set(vrrp.address, "it is this host's own, for VRRP");
  const anchors = new Set(vrrp.instances.flatMap(({ anchors }) => anchors));
  const usable: string[] = [];
  const refused: Refused[] = [];
  for (const address of vips) {
    // An anchor goes where its instance goes without being a VIP.
    if (anchors.has(address)) continue;
    const reason = own.get(address) ?? (isReachable(address) ? undefined : 'no other host can reach it');
    if (reason === undefined) usable.push(address);
    else refused.push({ address, reason });
  }
  return { usable, refused };
}

/** Loopback, link-local, unspecified and multicast addresses belong to no network that the hosts share. */
function isReachable(address: string): boolean {
  if (address.includes(':')) return !/^(::1?|f[ef].*)$/.test(address) || /^fe[c-f]/.test(address);
  return !/^(0|127|169\.254|22[4-9]|23\d|24\d|25[0-5])\./.test(address);
}
