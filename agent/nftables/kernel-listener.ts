// What the kernel gets for one listener, as a value. Pure.

import { parseBlock } from '../base/ip-range.ts';
import { memoByIdentity } from '../base/memo.ts';
import type { Family, Listener, Member, Protocol } from '../model/load-balancer.ts';
import { slotsOf } from './maglev.ts';

export interface KernelListener {
  readonly name: string;
  readonly family: Family;
  readonly protocol: Protocol;
  readonly port: number;
  readonly addresses: readonly string[];
  /** CIDRs of the clients that may send; undefined: all. */
  readonly clients: readonly string[] | undefined;
  /** The hash that chooses a slot: of the client's address and port, or of its address alone. */
  readonly by: 'flow' | 'client';
  /** The member of each slot; empty: new flows are refused. */
  readonly slots: readonly Member[];
  /** Also those that drain. */
  readonly members: readonly Member[];
}

const ALL_CLIENTS: Readonly<Record<Family, string>> = { v4: '0.0.0.0/0', v6: '::/0' };

/** The same value for the same listener. */
export const kernelListener = memoByIdentity((listener: Listener): KernelListener => {
  const { name, family, protocol, port, addresses, allowedCidrs, pool } = listener;
  const ready = pool.members.filter(({ state, weight }) => state === 'ready' && weight > 0);
  const areAllAllowed = allowedCidrs.includes(ALL_CLIENTS[family]);
  return {
    name,
    family,
    protocol,
    port,
    addresses,
    clients: areAllAllowed ? undefined : outermost(allowedCidrs),
    by: pool.persistence > 0 || pool.algorithm === 'source-hash' ? 'client' : 'flow',
    slots: ready.length === 0 ? [] : slotsOf(ready),
    members: pool.members,
  };
});

/** Without those that are inside another one: a set of nftables refuses ranges that overlap. */
const outermost = memoByIdentity((cidrs: readonly string[]): readonly string[] => {
  const ranges = cidrs.flatMap((cidr) => {
    const range = parseBlock(cidr)?.range;
    return range === undefined ? [] : [{ cidr, ...range }];
  });
  ranges.sort((a, b) => (a.first !== b.first ? compare(a.first, b.first) : compare(b.last, a.last)));
  const kept: string[] = [];
  let end = -1n;
  for (const { cidr, last } of ranges) {
    if (last <= end) continue;
    kept.push(cidr);
    end = last;
  }
  return kept;
});

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** True for listeners of the kernel's engine with an address. */
export function isForKernel({ engine, addresses }: Listener): boolean {
  return engine === 'kernel' && addresses.length > 0;
}
