// A row of the status page: cut to what the page shows. Pure.

import type { PageProblem, PageProblems, PageRow } from '../../../health/page-model.ts';
import type { Problem } from '../../model/load-balancer.ts';
import type { LoadBalancerRow } from '../answers/load-balancer-row.ts';
import type { Traffic } from './traffic-history.ts';

/** The page shows so many problems, and addresses and ports of a load balancer, and counts the rest. */
export const MAX_PROBLEMS = 20;
export const MAX_ADDRESSES = 4;
/** Characters of one text. */
const MAX_LENGTH = 400;

export function pageRowOf(row: LoadBalancerRow, { open, rate }: Traffic): PageRow {
  const { key, verdict, status, addresses, ports, engines, ready, down, members, problems } = row;
  return {
    ...{ key, verdict, status, ready, down, members },
    vips: addresses.slice(0, MAX_ADDRESSES),
    moreVips: Math.max(0, addresses.length - MAX_ADDRESSES),
    ports: ports.slice(0, MAX_ADDRESSES),
    morePorts: Math.max(0, ports.length - MAX_ADDRESSES),
    problems: problems.length,
    isOfKernel: engines.includes('kernel'),
    open: shown(open),
    rate: shown(rate),
  };
}

/** With one digit after the point; undefined for NaN. */
export function shown(value: number): number | undefined {
  return Number.isNaN(value) ? undefined : rounded(value);
}

/** Of a history. */
export function rounded(value: number): number {
  return Math.round(value * 10) / 10;
}

/** True if its key, an address or a port has the text, which is in lower case. */
export function hasText({ key, addresses, ports }: LoadBalancerRow, text: string): boolean {
  return (
    key.toLowerCase().includes(text) ||
    addresses.some((address) => address.includes(text)) ||
    ports.some((port) => port.toLowerCase().includes(text))
  );
}

/** Problems, and the load balancer that has them; '' for none. */
export interface Found {
  readonly key: string;
  readonly problems: readonly Problem[];
}

/** Of the page, and of one reason. */
const MAX_REASONS = 20;
const MAX_OF_REASON = 5;

/** By reason, in the order in which the reasons appear. */
export function groupsOf(found: readonly Found[]): readonly PageProblems[] {
  const groups = new Map<string, { count: number; readonly shown: PageProblem[] }>();
  for (const { key, problems } of found)
    for (const { object, reason, message } of problems) {
      const group = groups.get(reason) ?? { count: 0, shown: [] };
      groups.set(reason, group);
      group.count++;
      if (group.shown.length < MAX_OF_REASON)
        group.shown.push({ key, object: cut(object), message: cut(message) });
    }
  return [...groups].slice(0, MAX_REASONS).map(([reason, group]) => ({ reason, ...group }));
}

export function cut(text: string): string {
  return text.length <= MAX_LENGTH ? text : `${text.slice(0, MAX_LENGTH)}…`;
}
