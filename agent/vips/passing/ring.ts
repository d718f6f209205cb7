// The way of packets whose connection another host has: from host to host, in the order of the setting `hosts`, and past none twice. A
// packet carries the number of the host where it came in as its DSCP, of those for experimental and local use (RFC 2474: xxxx11),
// which are as many as hosts. Pure.

import type { HostGroup } from '../../model/host-group.ts';

export interface Ring {
  /** Name of the next living host; '' for none. */
  readonly next: string;
  /** The DSCP of packets that come in at this host. */
  readonly own: number;
  /** DSCPs of packets that the next host has not seen. */
  readonly before: readonly number[];
  /** DSCPs of all hosts. */
  readonly all: readonly number[];
}

/** `next` is '' if no other host lives; undefined if this host is none of them. */
export function ringOf({ self, hosts }: HostGroup, living: ReadonlySet<string>): Ring | undefined {
  const count = hosts.length;
  const at = hosts.findIndex(({ name }) => name === self.name);
  const steps = hosts.findIndex((_, step) => step > 0 && living.has(hosts[(at + step) % count]?.name ?? ''));
  if (at < 0) return undefined;
  const all = hosts.map((_, each) => dscpOf(each));
  if (steps < 0) return { next: '', own: dscpOf(at), before: [], all };
  // A packet from a host between this one and the next, or from the next, has gone round.
  const before = hosts.flatMap((_, each) => ((each - at + count) % count > steps ? dscpOf(each) : []));
  return { next: hosts[(at + steps) % count]?.name ?? '', own: dscpOf(at), before, all };
}

function dscpOf(index: number): number {
  return 4 * index + 3;
}
