// Renders the tables that pass packets on, one for each family in which the hosts have a back network. Pure, except that it reads
// the template at start.

import { loadTemplate } from '../../base/template.ts';
import type { Family } from '../../model/load-balancer.ts';
import type { Ring } from './ring.ts';

const template = loadTemplate('vips/passing');

export interface PassingRules {
  readonly table: string;
  readonly ring: Ring;
  /** The interface of the back network. */
  readonly device: string;
  /** The back addresses of the next host. */
  readonly next: readonly string[];
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

/** Replaces the tables in one transaction; a family without a back network has none. */
export function renderPassing(rules: PassingRules): string {
  const { table, ring, device, next, knowsSockets, isLoose } = rules;
  const vips = [...rules.vips];
  const families: readonly Family[] = ['v4', 'v6'];
  return families
    .map((family) => {
      const isV6 = family === 'v6';
      const address = next.find((each) => each.includes(':') === isV6);
      if (address === undefined) return removal(table, family);
      const own = vips.filter((each) => each.includes(':') === isV6);
      return template({
        ...WORDS[family],
        table,
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
