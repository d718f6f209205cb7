// How the VIPs of a pool are announced by BGP: the schema of the field `bgp` of an AddressPool, and its value. Pure.

import { community, largeCommunity } from '../base/communities.ts';
import { type AddressRange, addressText } from '../base/ip-range.ts';
import { peerName, subdomain } from '../base/name-forms.ts';
import { listOf, object, textRule, type Valid, wholeNumber } from '../base/validate.ts';
import { type Selector, selectorSchema } from './label-selector.ts';
import { named } from './object-names.ts';

export interface PoolBgp {
  /** Names of peers; empty: all. */
  readonly peers: readonly string[];
  readonly communities: readonly string[];
  readonly largeCommunities: readonly string[];
  /** To peers of the own ASN; undefined: as the peer has it. */
  readonly localPreference: number | undefined;
  /** Whole networks that leave as one route while this host announces a VIP inside. */
  readonly aggregates: readonly Aggregate[];
  /** The hosts that announce: those that are named, and those whose labels match. Both empty: all. */
  readonly hosts: readonly string[];
  readonly hostSelector: Selector;
}

/** All networks of a length inside a network. */
export interface Aggregate {
  readonly family: 'v4' | 'v6';
  /** The first and the last address of the network. */
  readonly first: string;
  readonly last: string;
  /** `198.51.100.0/22` */
  readonly network: string;
  /** 24: the route of 198.51.100.1 is 198.51.100.0/24. */
  readonly length: number;
}

const NOBODY: Selector = { matchLabels: {}, matchExpressions: [] };
const MAX_ITEMS = 16;

const nameOfPeer = textRule(peerName.check, peerName.not).meta({
  maxLength: 30,
  pattern: '^[a-z][a-z0-9-]*$',
});

export const poolBgpSchema = object({
  peers: listOf(nameOfPeer)
    .meta({
      maxItems: MAX_ITEMS,
      description: 'Only these peers get the routes, by their names. Empty: all.',
    })
    .or([]),
  communities: listOf(community)
    .meta({ maxItems: MAX_ITEMS, description: 'Added to the routes: 65001:100, no-export, no-advertise.' })
    .or([]),
  largeCommunities: listOf(largeCommunity)
    .meta({ maxItems: MAX_ITEMS, description: 'Added to the routes: 65001:1:2 (RFC 8092).' })
    .or([]),
  localPreference: wholeNumber(1, 4_294_967_295)
    .meta({
      format: 'int64',
      description: 'The preference for peers of the own ASN; otherwise as the peer has it.',
    })
    .nullish(),
  aggregateLength: wholeNumber(8, 32)
    .meta({
      description:
        'Besides the /32 routes, the IPv4 network of this length is announced while a VIP inside is. Each IPv4 block must consist of such networks.',
    })
    .nullish(),
  aggregateLengthV6: wholeNumber(16, 128).meta({ description: 'The same for IPv6.' }).nullish(),
  announceFrom: object({
    hosts: listOf(named(subdomain)).meta({ maxItems: MAX_ITEMS, description: 'Names of hosts.' }).or([]),
    hostSelector: selectorSchema
      .meta({ description: 'Hosts by the labels of their Nodes, or of the setting hostLabels.' })
      .or(NOBODY),
  })
    .meta({ description: 'Only these hosts announce, those named and those selected. Empty: all hosts.' })
    .or({ hosts: [], hostSelector: NOBODY }),
});

export type PoolBgpSpec = Valid<typeof poolBgpSchema>;

/** `blocks`: as the object has them, each of whole networks of the aggregates' lengths. */
export function poolBgpOf(
  { announceFrom, aggregateLength, aggregateLengthV6, ...spec }: PoolBgpSpec,
  blocks: readonly AddressRange[],
): PoolBgp {
  const lengths = { v4: aggregateLength ?? 32, v6: aggregateLengthV6 ?? 128 };
  return {
    ...spec,
    ...announceFrom,
    aggregates: blocks.flatMap((block) => {
      const length = lengths[block.family];
      return length === BITS[block.family] ? [] : networksOf(block).map((each) => ({ ...each, length }));
    }),
  };
}

/** Why a block does not consist of whole networks of the length; '' if it does. */
export function whyNoAggregate({ family, first, last }: AddressRange, length: number): string {
  const size = 1n << BigInt(BITS[family] - length);
  if (first % size === 0n && (last + 1n) % size === 0n) return '';
  return `${length} is not possible: ${addressText(first, family)}-${addressText(last, family)} does not consist of whole networks /${length}`;
}

const BITS = { v4: 32, v6: 128 } as const;

/** The fewest networks that make up the range. */
function networksOf({ family, first, last }: AddressRange): Omit<Aggregate, 'length'>[] {
  const networks: Omit<Aggregate, 'length'>[] = [];
  for (let from = first; from <= last; ) {
    let host = 0;
    while (
      host < BITS[family] &&
      from % (2n << BigInt(host)) === 0n &&
      from + (2n << BigInt(host)) - 1n <= last
    )
      host++;
    const to = from + (1n << BigInt(host)) - 1n;
    const network = `${addressText(from, family)}/${BITS[family] - host}`;
    networks.push({ family, network, first: addressText(from, family), last: addressText(to, family) });
    from = to + 1n;
  }
  return networks;
}
