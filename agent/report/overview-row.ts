// One row of the status page: a load balancer, with what is served of it and what is wrong. Pure, but for what it asks
// of HAProxy's state as the agent knows it.

import { type OperatingStatus, operatingStatus } from '../../health/operating-status.ts';
import type { PageProblem, PageRow } from '../../health/page-model.ts';
import type { LoadBalancer, Problem } from '../model/load-balancer.ts';
import { dataplaneProblems } from './dataplane-problems.ts';
import { dataplaneFacts } from './operating.ts';
import type { StatusSources } from './status.ts';

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

export function entryOf(loadBalancer: LoadBalancer, sources: StatusSources): Entry {
  const { haproxy } = sources;
  const { key, vips, listeners } = loadBalancer;
  const now = operatingStatus(loadBalancer, dataplaneFacts(haproxy));
  const problems = [...loadBalancer.problems, ...dataplaneProblems(loadBalancer, sources), ...now.problems];
  let [ready, down, members, served] = [0, 0, 0, 0];
  for (const [at, { name, pool }] of listeners.entries()) {
    const { members: statuses = [], pool: status } = now.listeners[at] ?? {};
    const up = statuses.filter(takesConnections).length;
    const failing = statuses.filter((each) => each.status === 'ERROR').length;
    ready += up;
    down += failing;
    members += statuses.length;
    // Where checks fail all members get connections as if they were up, unless that is not wanted.
    const isAny = up > 0 || (status === 'ERROR' && pool.whenAllDown === 'serve');
    if (isAny && haproxy.serves(name)) served++;
  }
  const addresses = vips.map(({ address }) => address);
  const ports = [...new Set(listeners.map(({ protocol, port }) => `${protocol} ${port}`))];
  const row: PageRow = {
    key,
    verdict: served === 0 ? 'not served' : served < listeners.length ? 'served in part' : 'served',
    vips: addresses.slice(0, FEW),
    moreVips: Math.max(0, addresses.length - FEW),
    ports: ports.slice(0, FEW),
    morePorts: Math.max(0, ports.length - FEW),
    ready,
    down,
    members,
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

export function takesConnections({ status }: { readonly status: OperatingStatus }): boolean {
  return status === 'ONLINE' || status === 'NO_MONITOR';
}

export function cut(text: string): string {
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST)}…`;
}
