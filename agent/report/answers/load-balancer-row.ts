// What the status page and the command `list` show of one load balancer: its addresses and ports, how many members it has
// and how it is served. Pure.

import type { Verdict } from '../../../health/page-model.ts';
import type { Engine, LoadBalancer, Problem } from '../../model/load-balancer.ts';
import type { OperatingStatus } from '../../model/operating-status.ts';
import { takesConnections, type ViewSources, viewOf } from '../operating/load-balancer-view.ts';

export interface LoadBalancerRow {
  readonly key: string;
  readonly verdict: Verdict;
  readonly status: OperatingStatus;
  readonly addresses: readonly string[];
  /** Each once, such as `TCP 80`. */
  readonly ports: readonly string[];
  readonly engines: readonly Engine[];
  /** Members that accept new connections, members whose check fails, and all members, of all listeners. */
  readonly ready: number;
  readonly down: number;
  readonly members: number;
  readonly problems: readonly Problem[];
}

export function rowOf(loadBalancer: LoadBalancer, sources: ViewSources): LoadBalancerRow {
  const { key, vips, listeners } = loadBalancer;
  const { health, problems, verdict } = viewOf(loadBalancer, sources);
  const members = health.listeners.flatMap((listener) => listener.members);
  return {
    key,
    verdict,
    status: health.status,
    addresses: vips.map(({ address }) => address),
    ports: [...new Set(listeners.map(({ protocol, port }) => `${protocol} ${port}`))],
    engines: [...new Set(listeners.map(({ engine }) => engine))],
    ready: members.filter(takesConnections).length,
    down: members.filter(({ status }) => status === 'ERROR').length,
    members: members.length,
    problems,
  };
}

/** The worst first. */
const VERDICTS: readonly Verdict[] = ['not served', 'members down', 'served in part', 'no ready member'];

/** How many ranks there are. */
export const RANKS = VERDICTS.length + 2;

/** 0 for the worst; the last rank is that of a load balancer without any fault. */
export function rankOf(row: Pick<LoadBalancerRow, 'verdict' | 'down' | 'problems'>): number {
  if (row.verdict !== 'served') return VERDICTS.indexOf(row.verdict);
  return isWell(row) ? RANKS - 1 : RANKS - 2;
}

export function isWell({
  verdict,
  down,
  problems,
}: Pick<LoadBalancerRow, 'verdict' | 'down' | 'problems'>): boolean {
  return verdict === 'served' && down === 0 && problems.length === 0;
}
