// Renders all rules and elements as one file for `nft -f`, which replaces the tables in one transaction. Pure, except that it
// reads the template at start.
// Why: docs/design/decisions/0070-no-flowtable.md

import { familyOf, parseAddress } from '../../base/ip.ts';
import { addressText } from '../../base/ip-range.ts';
import { loadTemplate } from '../../base/template.ts';
import type { Family } from '../../model/load-balancer.ts';
import { adoptionMark, type SourceGroups } from '../../model/source-groups.ts';
import { AFFINITY_SECONDS, CHOSEN, MAX_CLIENTS } from './affinity.ts';
import { additions, comment, MARK_OFFSET, sourceChain, sourceMap } from './command-text.ts';
import { type Count, type Element, elementChange } from './elements.ts';
import { isDirect, type KernelListener } from './kernel-listener.ts';
import { TABLE_SIZES } from './maglev.ts';
import type { Place } from './place.ts';
import { SharedElements } from './shared-elements.ts';

const template = loadTemplate('nftables/table');
const affinityTemplate = loadTemplate('nftables/affinity');
const directTemplate = loadTemplate('nftables/direct');

/** Flows to direct members that are remembered, of each family: some 100 bytes each. */
const MAX_FLOWS = 1_048_576;

/** For the hashes of a client that choose its member and its source address; the same on both hosts of a pair. */
const SEED = 0x6865_6164;
const SOURCE_SEED = 0x6761_7465;

const ALL_PROTOCOLS = ['TCP', 'UDP', 'SCTP'] as const;

/** Before a listener and a member that is down, in a comment. */
const DOWN = '# down ';

const FAMILIES: readonly {
  readonly family: Family;
  readonly words: Readonly<Record<'ip' | 'address' | 'icmp', string>>;
}[] = [
  { family: 'v4', words: { ip: 'ip', address: 'ipv4_addr', icmp: 'icmp' } },
  { family: 'v6', words: { ip: 'ip6', address: 'ipv6_addr', icmp: 'icmpv6' } },
];

export interface Rules {
  readonly table: string;
  /** 16 hex digits: a name that shows whether the kernel still has these rules. */
  readonly generation: string;
  readonly listeners: readonly KernelListener[];
  readonly sources: SourceGroups;
  /** Until now, by the keys of their elements. */
  readonly counts: ReadonlyMap<string, Count>;
  /** Whether packets and bytes are counted, and not new flows only. */
  readonly countsTraffic: boolean;
  /** Whether the kernel can look for the socket of a packet. */
  readonly knowsSockets: boolean;
}

/** Replaces tables of this name. Comments name each listener and its members that are down. */
export function* rulesText({
  table,
  generation,
  listeners,
  sources,
  counts,
  countsTraffic,
  knowsSockets,
}: Rules): Generator<string> {
  for (const { family, words } of FAMILIES)
    yield tableText(
      family,
      { ...words, table, generation, countsTraffic, knowsSockets },
      sources,
      prefixesOf(listeners, family),
    );
  yield affinityText(table);
  yield directText(table, listeners, knowsSockets);
  const anchors = sources.groups.flatMap(({ addresses }) => addresses);
  const shared = new SharedElements(sources.groupOf);
  const { added } = shared.change(listeners.map((after) => ({ before: undefined, after })));
  const all = [...anchors.map((address): Element => ({ map: 'anchors', address })), ...added];
  yield* additions(table, all, counts);
  for (const listener of listeners) {
    yield comment(listener.name);
    for (const member of listener.down) yield `${DOWN}${listener.name} ${member}\n`;
    yield* additions(table, elementChange(undefined, listener).added, counts);
  }
}

/** The rules of one family, without elements. */
function tableText(
  family: Family,
  words: Readonly<Record<string, string | boolean>>,
  { groups, areAdopted }: SourceGroups,
  prefixes: ReadonlySet<number>,
): string {
  const remembers = family === 'v4';
  const sources = groups.flatMap(({ id, addresses }) => {
    const ofFamily = addresses.filter((each) => familyOf(each) === family);
    if (ofFamily.length === 0) return [];
    const choice = {
      chain: sourceChain(id),
      count: ofFamily.length,
      addresses: sourceMap(ofFamily),
      adopted: areAdopted === true && [{ mark: hex(adoptionMark(id)), chain: sourceChain(id) }],
    };
    return [{ ...words, ...choice, seed: hex(SOURCE_SEED) }];
  });
  const offset = hex(MARK_OFFSET);
  const sizes = TABLE_SIZES.map((size) => ({ ...words, remembers, size, seed: hex(SEED), offset }));
  const masked = Array.from(prefixes, (prefix) => ({ prefix, mask: maskText(prefix, family) })).flatMap(
    (mask) => sizes.map((size) => ({ ...size, ...mask })),
  );
  const protocols = ALL_PROTOCOLS.map((each) => ({ ...words, protocol: each.toLowerCase(), offset }));
  return template({ ...words, remembers, offset, protocols, sizes, masked, sources });
}

/** The table that remembers clients. */
function affinityText(table: string): string {
  const timeouts = AFFINITY_SECONDS.map((seconds) => ({ seconds }));
  const marks = { offset: hex(MARK_OFFSET), chosen: hex(CHOSEN), known: hex(0xffff_ffff - CHOSEN) };
  return affinityTemplate({ table, size: MAX_CLIENTS, ...marks, timeouts });
}

/** Addresses in an error of ICMP: where the packet in it begins, in bits, and what comes before its ports. */
const IN_ERRORS = {
  v4: { protocolInError: 136, clientInError: '@th,192,32', portsInError: 224, portInError: '@th,240,16' },
  v6: { protocolInError: 112, clientInError: '@th,256,128', portsInError: 384, portInError: '@th,400,16' },
} as const;
const ERROR_TYPES = {
  v4: 'destination-unreachable, time-exceeded, parameter-problem',
  v6: 'destination-unreachable, packet-too-big, time-exceeded, parameter-problem',
} as const;

/** The table of direct members, which is empty if there are none. */
function directText(table: string, listeners: readonly KernelListener[], knowsSockets: boolean): string {
  const direct = listeners.filter(isDirect);
  const [seed, offset] = [hex(SEED), hex(MARK_OFFSET)];
  const families = FAMILIES.map(({ family, words }) => {
    const { clientInError, portInError, ...inError } = IN_ERRORS[family];
    const { ip } = words;
    const client = { chain: 'client', from: `${ip} saddr`, inError: clientInError };
    const kinds = [
      { chain: 'flow', from: `${ip} saddr . th sport`, inError: `${clientInError} . ${portInError}` },
      client,
      ...Array.from(prefixesOf(direct, family), (prefix) => {
        const mask = maskText(prefix, family);
        return {
          prefix,
          chain: 'client',
          from: `${ip} saddr & ${mask}`,
          inError: `${clientInError} & ${inErrorMask(prefix, family)}`,
        };
      }),
    ];
    const hashes = TABLE_SIZES.flatMap((slots) =>
      kinds.map((kind) => {
        const suffix = 'prefix' in kind ? `_${kind.prefix}` : '';
        return { ...words, ...kind, chain: `${kind.chain}_${slots}${suffix}`, slots, seed, offset };
      }),
    );
    const marks = { seed, offset };
    const errorTypes = ERROR_TYPES[family];
    const isUsed = direct.length > 0;
    return {
      ...words,
      ...inError,
      ...marks,
      table,
      size: MAX_FLOWS,
      hashes,
      errorTypes,
      isUsed,
      knowsSockets,
    };
  });
  return directTemplate({ families });
}

/** A mask for bytes that nft reads as a number. */
function inErrorMask(prefix: number, family: Family): string {
  const bits = family === 'v4' ? 32 : 128;
  return `0x${(((1n << BigInt(prefix)) - 1n) << BigInt(bits - prefix)).toString(16)}`;
}

/** The prefixes by which the listeners of a family share members: each has chains of its own. */
export function prefixesOf(listeners: Iterable<KernelListener>, of: Family): ReadonlySet<number> {
  const prefixes = new Set<number>();
  for (const { family, prefix } of listeners) if (family === of && prefix !== undefined) prefixes.add(prefix);
  return prefixes;
}

function maskText(prefix: number, family: Family): string {
  const bits = family === 'v4' ? 32 : 128;
  return addressText(((1n << BigInt(prefix)) - 1n) << BigInt(bits - prefix), family);
}

function hex(value: number): string {
  return `0x${value.toString(16)}`;
}

/** The members that were down when the file was written, by listener. */
export function downIn(text: string): ReadonlyMap<string, readonly string[]> {
  const lines = text.split('\n').filter((line) => line.startsWith(DOWN));
  const pairs = lines.map((line) => line.slice(DOWN.length).split(' ', 2));
  const byListener = Map.groupBy(pairs, ([listener = '']) => listener);
  return new Map(
    Array.from(byListener, ([listener, elements]) => [listener, elements.map(([, member = '']) => member)]),
  );
}

/** The places that the rules of a file serve. */
export function* placesIn(text: string): Generator<Place> {
  for (const [, words, elements = ''] of text.matchAll(/^add element (ip6?) \S+ flows \{ (.*) \}$/gm))
    for (const element of elements.split(', ')) {
      const [address = '', name, port = ''] = element.split(' . ');
      const protocol = ALL_PROTOCOLS.find((each) => each.toLowerCase() === name);
      const family = words === 'ip' ? 'v4' : 'v6';
      if (protocol !== undefined && parseAddress(address)?.address === address)
        yield { family, address, protocol, port: Number.parseInt(port, 10) };
    }
}
