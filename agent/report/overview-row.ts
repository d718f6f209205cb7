// One row of the status page: a load balancer, with what is served of it and what is wrong. Pure.

import type { PageProblem, PageRow } from '../../health/page-model.ts';
import type { LoadBalancer, Problem } from '../model/load-balancer.ts';
import { takesConnections, type ViewSources, viewOf } from './load-balancer-view.ts';

/** How many problems, and how many addresses and ports, are shown; what is left out is counted. */
export const PROBLEMS = 20;
export const FEW = 4;
/** Characters of one text. */
const LONGEST = 400;

export interface Entry {
  readonly row: PageRow;
  /** What the search looks in. */
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
    vips: addresses.slice(0, FEW),
    moreVips: Math.max(0, addresses.length - FEW),
    ports: ports.slice(0, FEW),
    morePorts: Math.max(0, ports.length - FEW),
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
    for (const { object, reason, message } of problems.slice(0, PROBLEMS - shown.length))
      shown.push({ object: cut(object), reason, message: cut(message) });
  }
  return { shown, count };
}

export function isWell({ verdict, down, problems }: PageRow): boolean {
  return verdict === 'served' && down === 0 && problems === 0;
}

export function cut(text: string): string {
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST)}…`;
}
