// One row of the status page: a load balancer with its addresses, members and problems, cut to what the page shows. Pure.

import type { PageProblem, PageRow } from '../../health/page-model.ts';
import type { LoadBalancer, Problem } from '../model/load-balancer.ts';
import { takesConnections, type ViewSources, viewOf } from './load-balancer-view.ts';

/** The page shows so many problems, and addresses and ports of a load balancer, and counts the rest. */
export const MAX_PROBLEMS = 20;
export const MAX_ADDRESSES = 4;
/** Characters of one text. */
const MAX_LENGTH = 400;

export interface Entry {
  readonly row: PageRow;
  /** For the search. */
  readonly text: string;
  readonly addresses: readonly string[];
  readonly problems: readonly Problem[];
}

export interface PageProblems {
  /** The first ones. */
  readonly shown: readonly PageProblem[];
  readonly count: number;
}

export function entryOf(loadBalancer: LoadBalancer, sources: ViewSources): Entry {
  const { key, vips, listeners } = loadBalancer;
  const { health, problems, verdict } = viewOf(loadBalancer, sources);
  const members = health.listeners.flatMap((listener) => listener.members);
  const addresses = vips.map(({ address }) => address);
  const ports = [...new Set(listeners.map(({ protocol, port }) => `${protocol} ${port}`))];
  const row: PageRow = {
    key,
    verdict,
    vips: addresses.slice(0, MAX_ADDRESSES),
    moreVips: Math.max(0, addresses.length - MAX_ADDRESSES),
    ports: ports.slice(0, MAX_ADDRESSES),
    morePorts: Math.max(0, ports.length - MAX_ADDRESSES),
    ready: members.filter(takesConnections).length,
    down: members.filter(({ status }) => status === 'ERROR').length,
    members: members.length,
    problems: problems.length,
  };
  return { row, problems, addresses, text: [key, ...addresses, ...ports].join('\n').toLowerCase() };
}

/** The first problems of some lists, and how many there are. */
export function firstOf(lists: readonly (readonly PageProblem[])[]): PageProblems {
  const shown: PageProblem[] = [];
  let count = 0;
  for (const problems of lists) {
    count += problems.length;
    for (const { object, reason, message } of problems.slice(0, MAX_PROBLEMS - shown.length))
      shown.push({ object: cut(object), reason, message: cut(message) });
  }
  return { shown, count };
}

export function isWell({ verdict, down, problems }: PageRow): boolean {
  return verdict === 'served' && down === 0 && problems === 0;
}

export function cut(text: string): string {
  return text.length <= MAX_LENGTH ? text : `${text.slice(0, MAX_LENGTH)}…`;
}
