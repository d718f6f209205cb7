// Renders all rules and elements as one file for `nft -f`, which replaces the tables in one transaction. Pure, except that it
// reads the template at start.

import { loadTemplate } from '../base/template.ts';
import { additions, MARK_OFFSET } from './command-text.ts';
import { type Element, elementChange } from './elements.ts';
import type { KernelListener } from './kernel-listener.ts';
import { TABLE_SIZES } from './maglev.ts';

const template = loadTemplate('nftables/table');

/** For the hash of a client; the same on both hosts of a pair. */
const SEED = 0x6865_6164;

const FAMILIES = [
  { ip: 'ip', address: 'ipv4_addr', icmp: 'icmp' },
  { ip: 'ip6', address: 'ipv6_addr', icmp: 'icmpv6' },
] as const;

export interface Rules {
  readonly table: string;
  /** 16 hex digits: a name that shows whether the kernel still has these rules. */
  readonly generation: string;
  readonly listeners: readonly KernelListener[];
  /** The address from which members get the packets to a VIP; '' for this host's own. */
  readonly sourceOf: (vip: string) => string;
  /** Source addresses that move between the hosts of a pair. */
  readonly anchors: readonly string[];
  /** New flows until now, by listener. */
  readonly counts: ReadonlyMap<string, number>;
}

/** Replaces tables of this name. A comment names each listener. */
export function* rulesText({
  table,
  generation,
  listeners,
  sourceOf,
  anchors,
  counts,
}: Rules): Generator<string> {
  const hex = (value: number): string => `0x${value.toString(16)}`;
  for (const family of FAMILIES) {
    const words = { ...family, table, generation, seed: hex(SEED), offset: hex(MARK_OFFSET) };
    yield template({ ...words, sizes: TABLE_SIZES.map((size) => ({ ...words, size })) });
  }
  const vips = new Set(listeners.flatMap(({ addresses }) => addresses));
  const added = [
    ...anchors.map((address): Element => ({ map: 'anchors', address })),
    ...Array.from(vips, (vip): Element => ({ map: 'sources', vip, source: sourceOf(vip) })),
  ].filter((element) => element.map !== 'sources' || element.source !== '');
  yield* additions(table, [{ removed: [], added, removedCounters: [], addedCounters: [] }], counts);
  for (const listener of listeners) {
    yield `# ${listener.name}\n`;
    yield* additions(table, [elementChange(undefined, listener)], counts);
  }
}
