// What the status page and the command `list` show of one load balancer: its addresses and ports, how many members it has
// and how it is served. Pure.

import type { Verdict } from '../../../health/page-model.ts';
import type { Engine, LoadBalancer, Problem } from '../../model/load-balancer.ts';
import { poolListener } from '../../model/names.ts';
import type { OperatingStatus } from '../../model/operating-status.ts';
import { problemsOf, type ViewSources, viewOf } from '../operating/load-balancer-view.ts';
import type { ListenerStatus, LoadBalancerStatus } from '../operating/operating-status.ts';

export interface LoadBalancerSummary {
  readonly key: string;
  readonly verdict: Verdict;
  readonly status: OperatingStatus;
  readonly addresses: readonly string[];
  /** What clients use instead, where a NAT translates it. */
  readonly publicAddresses: readonly string[];
  /** Each once, such as `TCP 80`. */
  readonly ports: readonly string[];
  readonly engines: readonly Engine[];
  /** Members that accept new connections, members that fail, and all members, of all listeners and of the pools of its routes. */
  readonly ready: number;
  readonly down: number;
  readonly members: number;
  /** Its own. */
  readonly problems: readonly Problem[];
  /** How many the pools of its routes have. */
  readonly poolProblems: number;
}

export function rowOf(loadBalancer: LoadBalancer, sources: ViewSources): LoadBalancerSummary {
  const { key, vips, listeners } = loadBalancer;
  const { health, problems, verdict } = viewOf(loadBalancer, sources);
  return {
    key,
    verdict,
    status: health.status,
    addresses: vips.map(({ address }) => address),
    publicAddresses: vips.flatMap(({ publicAddress }) => publicAddress || []),
    ports: [...new Set(listeners.map(({ protocol, port }) => `${protocol} ${port}`))],
    engines: [...new Set(listeners.map(({ engine }) => engine))],
    ...membersOf(loadBalancer, health, sources),
    problems,
    poolProblems: poolProblemsOf(key, sources),
  };
}

/** Each pool counts once, whatever ports routes send to. */
function poolProblemsOf(owner: string, sources: ViewSources): number {
  const { desired, operating } = sources;
  let count = 0;
  for (const key of new Set(desired.poolUses.usesOf(owner).map(({ pool }) => pool))) {
    const pool = desired.loadBalancers.get(key);
    if (pool !== undefined) count += problemsOf(pool, sources, operating.of(key)?.problems ?? []).length;
  }
  return count;
}

type Counts = Pick<LoadBalancerSummary, 'ready' | 'down' | 'members'>;

/** Each member of a Service's port counts; of a Gateway, or an Ingress class, those of each pool that its routes send to. */
function membersOf(
  { key, listeners }: LoadBalancer,
  health: LoadBalancerStatus,
  { desired, operating }: ViewSources,
): Counts {
  const counts = { ready: 0, down: 0, members: 0 };
  const add = (status: ListenerStatus | undefined, members: number): void => {
    counts.ready += status?.taking ?? 0;
    counts.down += (status?.down ?? 0) + (status?.failing ?? 0);
    counts.members += members;
  };
  for (const [at, { pool }] of listeners.entries()) add(health.listeners[at], pool.members.length);
  for (const { pool, port } of desired.poolUses.usesOf(key)) {
    const name = poolListener(pool, port);
    const own = desired.loadBalancers.get(pool)?.listeners.find((each) => each.name === name);
    const status = operating.of(pool)?.listeners.find((each) => each.name === name);
    add(status, own?.pool.members.length ?? 0);
  }
  return counts;
}

/** The worst first. */
const VERDICTS: readonly Verdict[] = [
  'not served',
  'members fail',
  'members down',
  'served in part',
  'no ready member',
];

/** How many ranks there are. */
export const RANKS = VERDICTS.length + 2;

/** 0 for the worst; the last rank is that of a load balancer without any fault. */
export function rankOf(row: Faults): number {
  if (row.verdict !== 'served') return VERDICTS.indexOf(row.verdict);
  return isWell(row) ? RANKS - 1 : RANKS - 2;
}

type Faults = Pick<LoadBalancerSummary, 'verdict' | 'down' | 'problems' | 'poolProblems'>;

export function isWell({ verdict, down, problems, poolProblems }: Faults): boolean {
  return verdict === 'served' && down === 0 && problems.length + poolProblems === 0;
}
