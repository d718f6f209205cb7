// Renders the tables that pass packets on, one for each family in which the hosts have a back network. Pure, except that it reads
// the template at start.

import { loadTemplate, type View } from '../../base/template.ts';
import type { Family } from '../../model/load-balancer.ts';
import { ADOPTION_MARKS, adoptionMark } from '../../model/source-groups.ts';
import type { Adoption } from './adoption.ts';
import type { Ring } from './ring.ts';

const template = loadTemplate('vips/passing');

export interface PassingRules {
  readonly table: string;
  /** `next` is '' if no other host lives. */
  readonly ring: Ring;
  /** The interface of the back network. */
  readonly device: string;
  /** The back addresses of the next host, one for each family that the hosts have; without a next host those of this one. */
  readonly next: readonly string[];
  readonly adoption: Adoption;
  readonly vips: Iterable<string>;
  /** The kernel can find the socket of a packet. */
  readonly knowsSockets: boolean;
  readonly isLoose: boolean;
}

export const WORDS = {
  v4: {
    ip: 'ip',
    address: 'ipv4_addr',
    icmp: 'icmp',
    errors: 'destination-unreachable, time-exceeded',
  },
  v6: {
    ip: 'ip6',
    address: 'ipv6_addr',
    icmp: 'icmpv6',
    errors: 'destination-unreachable, packet-too-big, time-exceeded',
  },
} as const;

/** The DSCP of packets that go straight to the heir of a dead host, and of those that tell the next host of a connection taken over. */
const HANDED = 2;
const noticeOf = (group: number): number => 4 * (group - 1) + 1;

const COUNTERS = ['passed', 'adopted', 'strays', 'limited'] as const;

/**
 * Replaces the tables in one transaction; a family without a back network has none. `isFresh`: also the sets, for tables that are
 * of another version.
 */
export function renderPassing(rules: PassingRules, isFresh = false): string {
  const { table, ring, device, next, knowsSockets, isLoose } = rules;
  const vips = [...rules.vips];
  const families: readonly Family[] = ['v4', 'v6'];
  return families
    .map((family) => {
      const isV6 = family === 'v6';
      const address = next.find((each) => each.includes(':') === isV6);
      if (address === undefined) return removal(table, family);
      const own = vips.filter((each) => each.includes(':') === isV6);
      const words = { ...WORDS[family], table };
      return template({
        ...words,
        ...adoptionView(rules.adoption, family, words),
        isFresh,
        counters: COUNTERS.map((counter) => ({ ...words, counter })),
        handed: HANDED,
        hasNext: ring.next !== '',
        next: address,
        device,
        own: ring.own,
        hasBefore: ring.before.length > 0,
        before: ring.before.join(', '),
        all: ring.all.join(', '),
        hasVips: own.length > 0,
        vips: own.join(', '),
        knowsSockets,
        isLoose,
      });
    })
    .join('');
}

function adoptionView({ groups, own, last, heir }: Adoption, family: Family, words: View): View {
  const ofFamily = (all: readonly string[]): readonly string[] =>
    all.filter((each) => each.includes(':') === (family === 'v6'));
  const usable = groups.filter(({ addresses }) => ofFamily(addresses).length > 0);
  const anchors = ofFamily(own);
  const all = usable.flatMap(({ addresses }) => ofFamily(addresses));
  const [heirAddress = ''] = ofFamily(heir);
  const hasHeir = usable.some(({ id }) => id === last);
  const [first = ''] = anchors;
  return {
    groups: usable.map(({ id }) => ({
      ...words,
      group: id,
      mark: hex(adoptionMark(id)),
      notice: noticeOf(id),
    })),
    hasGroups: usable.length > 0,
    notices: usable.map(({ id }) => `${noticeOf(id)} : goto notice_${id}`).join(', '),
    hasAnchors: anchors.length > 0,
    anchors: anchors.join(', '),
    firstAnchor: family === 'v6' ? `[${first}]` : first,
    hasAllAnchors: all.length > 0,
    allAnchors: all.join(', '),
    marks: hex(ADOPTION_MARKS),
    anyMark: hex(adoptionMark(0)),
    lastMark: hex(adoptionMark(last)),
    isHeir: hasHeir && heirAddress === '',
    isHanded: hasHeir && heirAddress !== '',
    heir: heirAddress,
  };
}

function hex(value: number): string {
  return `0x${value.toString(16)}`;
}

/** Also if there are none. */
export function renderRemoval(table: string): string {
  return removal(table, 'v4') + removal(table, 'v6');
}

/** Changes the set of VIPs of tables that are there; '' for no change. */
export function renderChange(table: string, added: readonly string[], removed: readonly string[]): string {
  return (['v4', 'v6'] as const)
    .flatMap((family) =>
      [
        ['add', added],
        ['delete', removed],
      ].map(([verb, all]) => {
        const own = (all as readonly string[]).filter((each) => each.includes(':') === (family === 'v6'));
        return own.length === 0
          ? ''
          : `${verb} element ${WORDS[family].ip} ${table} vips { ${own.join(', ')} }\n`;
      }),
    )
    .join('');
}

function removal(table: string, family: Family): string {
  const name = `${WORDS[family].ip} ${table}`;
  return `table ${name}\ndelete table ${name}\n`;
}
