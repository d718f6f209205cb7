// From the settings and the VIPs to the text of keepalived.conf. Pure but for reading the templates at start.
//
// An instance announces one anchor that never changes; all VIPs are excluded from its advertisements. A backup does
// not take an advertisement whose addresses differ from its own for one (keepalived#1603), so that changing an address
// that is announced would split the pair.

import { addressNumber } from '../../base/ip-range.ts';
import { loadTemplate } from '../../base/template.ts';
import { instanceName, loweredBy, type VrrpSettings } from '../vrrp.ts';
import { type InstanceVips, share } from './config/share.ts';
import type { KeepalivedPaths } from './paths.ts';

const templates = {
  global: loadTemplate('keepalived/global'),
  instance: loadTemplate('keepalived/instance'),
};

/** `vips` in any order; the same addresses give the same text. */
export function renderKeepalived(
  vrrp: VrrpSettings,
  paths: Pick<KeepalivedPaths, 'fifo' | 'standing'>,
  vips: Iterable<string>,
): string {
  const global = templates.global({
    fifo: paths.fifo,
    standing: paths.standing,
    // Until the agent says otherwise the host is taken for one whose HAProxy does not answer: after a boot keepalived
    // is there first.
    lowest: loweredBy(['haproxy']),
  });
  const shares = share(vips, vrrp.instances);
  return [global, ...shares.map((one) => renderInstance(vrrp, one))].join('');
}

function renderInstance(vrrp: VrrpSettings, { instance, vips }: InstanceVips): string {
  const [anchor = '', ...others] = instance.anchors;
  return templates.instance({
    name: instanceName(instance.virtualRouterId),
    interface: vrrp.interface,
    virtualRouterId: instance.virtualRouterId,
    priority: instance.priority,
    advertInterval: vrrp.advertInterval / 1000,
    address: vrrp.address,
    peers: [...vrrp.peers].sort(),
    anchor: held(anchor, vrrp),
    excluded: [...others, ...[...vips].sort(byNumber)].map((address) => held(address, vrrp)),
  });
}

/** As keepalived is told to hold an address. */
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
