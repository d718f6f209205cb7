// A row of the status page: cut to what the page shows. Pure.

import type { PageHistory, PageProblem, PageProblems, PageRow } from '../../../health/page-model.ts';
import type { DesiredState } from '../../model/desired-state.ts';
import type { LoadBalancer, Problem } from '../../model/load-balancer.ts';
import type { LoadBalancerSummary } from '../answers/load-balancer-summary.ts';
import { BIN_MS, type Measure, recordOf, type Traffic, type TrafficValues } from './traffic-history.ts';

/** The page shows so many problems, and addresses and ports of a load balancer, and counts the rest. */
export const MAX_PROBLEMS = 20;
export const MAX_ADDRESSES = 4;
/** Characters of one text. */
const MAX_LENGTH = 400;

export function pageRowOf(
  row: LoadBalancerSummary,
  { open, rate }: Traffic,
  { rate: rates }: Pick<TrafficValues, 'rate'>,
): PageRow {
  const { key, verdict, status, addresses, ports, engines, ready, down, members } = row;
  return {
    ...{ key, verdict, status, ready, down, members },
    vips: addresses.slice(0, MAX_ADDRESSES),
    moreVips: Math.max(0, addresses.length - MAX_ADDRESSES),
    ports: ports.slice(0, MAX_ADDRESSES),
    morePorts: Math.max(0, ports.length - MAX_ADDRESSES),
    problems: row.problems.length + row.poolProblems,
    isOfKernel: engines.includes('kernel'),
    open: shown(open),
    rate: shown(rate),
    rates: rates.map((value) => rounded(value || 0)),
  };
}

/** A history for the page; null for NaN. */
export function historyOf(values: TrafficValues): PageHistory {
  const known = (measure: Measure): readonly (number | null)[] =>
    values[measure].map((value) => (Number.isNaN(value) ? null : rounded(value)));
  return { seconds: BIN_MS / 1_000, ...recordOf(known) };
}

/** With one digit after the point; undefined for NaN. */
export function shown(value: number): number | undefined {
  return Number.isNaN(value) ? undefined : rounded(value);
}

/** A value of a history. */
export function rounded(value: number): number {
  return Math.round(value * 10) / 10;
}

/**
 * True if its key, an address, a port, the name of a pool of its routes, or a member's address or pod has the text, which is in
 * lower case.
 */
export function hasText(
  { key, addresses, ports }: LoadBalancerSummary,
  text: string,
  { loadBalancers, poolUses }: Pick<DesiredState, 'loadBalancers' | 'poolUses'>,
): boolean {
  const pools = new Set(poolUses.usesOf(key).map(({ pool }) => pool));
  const hasMember = (each: string): boolean => membersHave(loadBalancers.get(each), text);
  return (
    key.toLowerCase().includes(text) ||
    addresses.some((address) => address.includes(text)) ||
    ports.some((port) => port.toLowerCase().includes(text)) ||
    hasMember(key) ||
    [...pools].some((pool) => pool.includes(text) || hasMember(pool))
  );
}

function membersHave(loadBalancer: LoadBalancer | undefined, text: string): boolean {
  return (loadBalancer?.listeners ?? []).some(({ pool }) =>
    pool.members.some(({ name, target }) => name.includes(text) || target.toLowerCase().includes(text)),
  );
}

/** Problems, and the load balancer that has them; '' for none. */
export interface Found {
  readonly key: string;
  readonly isGrave: boolean;
  readonly problems: readonly Problem[];
}

/** The most on the page, and of one reason. */
const MAX_REASONS = 20;
const MAX_OF_REASON = 5;

interface Group {
  count: number;
  isGrave: boolean;
  /** By message. */
  readonly texts: Map<string, PageProblem & { times: number }>;
}

/** By reason: grave ones first, then those with most problems. */
export function groupsOf(found: readonly Found[]): readonly PageProblems[] {
  const groups = new Map<string, Group>();
  for (const { key, isGrave, problems } of found)
    for (const { object, reason, message } of problems) {
      const group = groups.get(reason) ?? { count: 0, isGrave: false, texts: new Map() };
      groups.set(reason, group);
      group.count++;
      group.isGrave ||= isGrave;
      const known = group.texts.get(message);
      if (known !== undefined) known.times++;
      else if (group.texts.size < MAX_OF_REASON)
        group.texts.set(message, { key, object: cut(object), message: cut(message), times: 1 });
    }
  return [...groups]
    .sort(([, a], [, b]) => Number(b.isGrave) - Number(a.isGrave) || b.count - a.count)
    .slice(0, MAX_REASONS)
    .map(([reason, { count, isGrave, texts }]) => {
      const shown = [...texts.values()];
      return { reason, count, isGrave, shown, covered: shown.reduce((sum, { times }) => sum + times, 0) };
    });
}

export function cut(text: string): string {
  return text.length <= MAX_LENGTH ? text : `${text.slice(0, MAX_LENGTH)}…`;
}
