// Which VIP goes with which instance: where a pair has two with opposite priorities, each host carries about half.
// The same on every host and for ever, because an address that moved from one instance to another would be without a
// host for a moment. Pure.

import { hash } from 'node:crypto';
import type { VrrpInstanceSettings } from '../../vrrp.ts';

export interface InstanceVips {
  readonly instance: VrrpInstanceSettings;
  readonly vips: readonly string[];
}

/** By virtual router id; every instance is there, with or without VIPs. */
export function share(
  vips: Iterable<string>,
  instances: readonly VrrpInstanceSettings[],
): readonly InstanceVips[] {
  const inOrder = [...instances].sort((a, b) => a.virtualRouterId - b.virtualRouterId);
  const shares = inOrder.map((): string[] => []);
  for (const vip of new Set(vips)) shares[placeOf(vip, shares.length)]?.push(vip);
  return inOrder.map((instance, at) => ({ instance, vips: shares[at] ?? [] }));
}

function placeOf(vip: string, count: number): number {
  return count === 1 ? 0 : Number.parseInt(hash('sha256', vip).slice(0, 8), 16) % count;
}
