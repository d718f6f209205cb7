// Renders keepalived.conf from the settings and the VIPs. Pure, except that it reads the templates at start.
//
// An instance announces one anchor that never changes; all VIPs are excluded from its advertisements. A backup ignores an
// advertisement whose addresses differ from its own (keepalived#1603), so a change of announced addresses would split the
// pair.
// Why: docs/design/decisions/0034-vips-outside-advertisements.md

import { addressNumber } from '../../../base/ip-range.ts';
import { loadTemplate } from '../../../base/template.ts';
import {
  instanceName,
  instanceOf,
  loweredBy,
  type VrrpInstanceSettings,
  type VrrpSettings,
} from '../../vrrp.ts';
import { type AuthState, noAuth } from '../auth/auth-steps.ts';
import { authValues } from '../auth/auth-text.ts';
import type { KeepalivedPaths } from '../paths.ts';

const templates = {
  global: loadTemplate('keepalived/global'),
  instance: loadTemplate('keepalived/instance'),
};

/** The same `vips` in any order give the same text. */
export function renderKeepalived(
  vrrp: VrrpSettings,
  paths: Pick<KeepalivedPaths, 'fifo' | 'standing'>,
  vips: Iterable<string>,
  auth: AuthState = noAuth,
): string {
  const global = templates.global({
    fifo: paths.fifo,
    standing: paths.standing,
    // After a boot keepalived runs before the agent: until the agent sets the standing, HAProxy counts as not answering.
    lowest: loweredBy(['haproxy']),
  });
  // The same order on both hosts.
  const instances = [...vrrp.instances].sort((a, b) => a.virtualRouterId - b.virtualRouterId);
  const shares = instances.map((): string[] => []);
  for (const vip of new Set(vips)) shares[instances.indexOf(instanceOf(vip, instances))]?.push(vip);
  return [global, ...instances.map((one, at) => renderInstance(vrrp, one, shares[at] ?? [], auth))].join('');
}

function renderInstance(
  vrrp: VrrpSettings,
  instance: VrrpInstanceSettings,
  vips: readonly string[],
  auth: AuthState,
): string {
  const [anchor = '', ...others] = instance.anchors;
  return templates.instance({
    name: instanceName(instance.virtualRouterId),
    interface: vrrp.interface,
    virtualRouterId: instance.virtualRouterId,
    priority: instance.priority,
    advertInterval: vrrp.advertInterval / 1000,
    address: vrrp.address,
    peers: [...vrrp.peers].sort().map(withTtl),
    auth: authValues(auth),
    anchor: held(anchor, vrrp),
    excluded: [...others, ...[...vips].sort(byNumber)].map((address) => held(address, vrrp)),
  });
}

/**
 * A packet that has passed a router has a lower TTL: it is not from the peer. keepalived 2.2.7 would refuse every
 * advertisement over IPv6.
 */
function withTtl(peer: string): string {
  return peer.includes(':') ? peer : `${peer} min_ttl 255`;
}

/** An address in keepalived's notation. */
function held(address: string, { interface: device }: VrrpSettings): string {
  return `${address}/${address.includes(':') ? 128 : 32} dev ${device}`;
}

/** v4 before v6, then by number. */
function byNumber(a: string, b: string): number {
  const [aIsV6, bIsV6] = [a.includes(':'), b.includes(':')];
  if (aIsV6 !== bIsV6) return aIsV6 ? 1 : -1;
  const [first, second] = [addressNumber(a), addressNumber(b)];
  return first < second ? -1 : first > second ? 1 : 0;
}
