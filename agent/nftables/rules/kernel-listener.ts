// What the kernel gets for one listener, as a value. Pure.

import { parseBlock } from '../../base/ip-range.ts';
import { memoByIdentity } from '../../base/memo.ts';
import type { Family, Listener, LoadBalancer, Member, Protocol } from '../../model/load-balancer.ts';
import { affinitySeconds } from './affinity.ts';
import { slotsOf } from './maglev.ts';

export interface KernelListener {
  readonly name: string;
  readonly family: Family;
  readonly protocol: Protocol;
  readonly port: number;
  readonly addresses: readonly string[];
  /** CIDRs of the clients that may send; undefined: all. */
  readonly clients: readonly string[] | undefined;
  /** Whose address members get the packets from. */
  readonly sourceAddress: Listener['sourceAddress'];
  /** The hash that chooses a slot: of the client's address and port, or of its address alone; `affinity`: if it has no member yet. */
  readonly by: 'flow' | 'client' | 'affinity';
  /** `client`: so many bits of the client's address count; undefined: all. */
  readonly prefix?: number | undefined;
  /** How long a client keeps its member after its last new flow; 0 without `affinity`. */
  readonly affinitySeconds: number;
  /** The member of each slot; empty: new flows are refused. */
  readonly slots: readonly Member[];
  /** Also those that drain. */
  readonly members: readonly Member[];
  /** The names of the members that fail their checks, sorted: they keep their flows and have no slots. */
  readonly down: readonly string[];
}

/** A listener before and after; undefined if there is none. */
export interface ListenerChange {
  readonly before: KernelListener | undefined;
  readonly after: KernelListener | undefined;
}

/** Members that fail their checks, by name, with the cause. */
export type DownMembers = ReadonlyMap<string, string>;

const ALL_CLIENTS: Readonly<Record<Family, string>> = { v4: '0.0.0.0/0', v6: '::/0' };

/** With all members up; the same value for the same listener. */
export const kernelListener = memoByIdentity((listener: Listener) => listenerWithout(listener, new Map()));

const NONE: DownMembers = new Map();
const lastWithout = new WeakMap<
  Listener,
  { readonly down: DownMembers; readonly unreached: DownMembers; readonly value: KernelListener }
>();

/**
 * Without the members that are down, and without those that must never get a packet (`unreached`); the same value for the same
 * arguments as in the last call.
 */
export function kernelListenerWithout(
  listener: Listener,
  down: DownMembers,
  unreached = NONE,
): KernelListener {
  if (down.size === 0 && unreached.size === 0) return kernelListener(listener);
  const last = lastWithout.get(listener);
  if (last?.down === down && last.unreached === unreached) return last.value;
  const value = listenerWithout(listener, down, unreached);
  lastWithout.set(listener, { down, unreached, value });
  return value;
}

function listenerWithout(listener: Listener, down: DownMembers, unreached = NONE): KernelListener {
  const { name, family, protocol, port, addresses, sourceAddress, allowedCidrs, pool } = listener;
  const members =
    unreached.size === 0 ? pool.members : pool.members.filter((each) => !unreached.has(each.name));
  const ready = members.filter(({ state, weight }) => state === 'ready' && weight > 0);
  const up = ready.filter((member) => !down.has(member.name));
  const inUse = up.length > 0 || pool.whenAllDown === 'reject' ? up : ready;
  const by = choiceOf(listener);
  const areAllAllowed = allowedCidrs.includes(ALL_CLIENTS[family]);
  return {
    name,
    family,
    protocol,
    port,
    addresses,
    clients: areAllAllowed ? undefined : outermost(allowedCidrs),
    sourceAddress,
    slots: inUse.length === 0 ? [] : slotsOf(inUse),
    by,
    prefix: by === 'client' ? pool.persistencePrefix : undefined,
    affinitySeconds: by === 'affinity' ? affinitySeconds(pool.persistence) : 0,
    members,
    down: [...down.keys()].sort(),
  };
}

function choiceOf({ family, pool, sourceAddress }: Listener): KernelListener['by'] {
  // The kernel remembers single addresses only.
  const isRemembered = pool.persistence > 0 && family === 'v4' && pool.persistencePrefix === undefined;
  if (isRemembered && sourceAddress !== 'direct') return 'affinity';
  return pool.persistence > 0 || pool.algorithm === 'source-hash' ? 'client' : 'flow';
}

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

/** Members see the clients' addresses, so that their way back must lead through this host. */
export function isInGatewayMode({ sourceAddress }: KernelListener): boolean {
  return sourceAddress === 'client';
}

/** Members get the packets of clients unchanged, and answer past this host. */
export function isDirect({ sourceAddress }: Pick<KernelListener, 'sourceAddress'>): boolean {
  return sourceAddress === 'direct';
}

/** With all members up; the same value for the same load balancer. */
export const kernelListeners = memoByIdentity(({ listeners }: LoadBalancer): readonly KernelListener[] =>
  listeners.filter(isForKernel).map(kernelListener),
);
