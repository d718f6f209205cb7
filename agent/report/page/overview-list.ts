// The load balancers that a status page lists: those that its query asks for, in the order that it asks for. The pools of
// routes are parts of the load balancers that send to them. Reads the rows; changes nothing.

import type { PageColumn, PageList } from '../../../health/page-model.ts';
import { inNaturalOrder } from '../../base/natural-order.ts';
import type { DesiredState } from '../../model/desired-state.ts';
import { ownerOf } from '../../model/names.ts';
import type { LoadBalancerSummaries } from '../answers/load-balancer-summaries.ts';
import { isWell, type LoadBalancerSummary } from '../answers/load-balancer-summary.ts';
import { isOfNamespace } from '../answers/of-namespace.ts';
import { hasText, pageRowOf } from './overview-row.ts';
import type { TrafficBook } from './traffic-book.ts';

/** The most on one page, which counts the rest. */
const MAX_ROWS = 50;

/** The number by which a column sorts; those of one number stay in the order of the other rows. */
type NumberOf = (row: LoadBalancerSummary, traffic: Pick<TrafficBook, 'of'>) => number;

const NUMBERS: Readonly<Record<Exclude<PageColumn, 'name' | 'state'>, NumberOf>> = {
  members: ({ members }) => members,
  open: ({ key }, traffic) => traffic.of(key).open,
  rate: ({ key }, traffic) => traffic.of(key).rate,
};

export interface ListSources {
  readonly rows: Pick<LoadBalancerSummaries, 'worstFirst'>;
  readonly traffic: Pick<TrafficBook, 'of' | 'history'>;
  readonly desired: Pick<DesiredState, 'loadBalancers' | 'poolUses'>;
}

/**
 * `search`: a part of a key, an address, a port or a member; `namespace`: theirs, or that of a pool; `only`: a verdict, or
 * `trouble`: load balancers that are not well; `sort`: a column, from the greatest down with `-`, otherwise the worst first; `page`: from 1.
 */
export async function listOf(
  query: URLSearchParams,
  { rows, traffic, desired }: ListSources,
): Promise<PageList> {
  const search = (query.get('search') ?? '').trim().toLowerCase();
  const namespace = query.get('namespace') ?? '';
  const only = query.get('only') ?? '';
  const found = await rows.worstFirst(
    (row) =>
      ownerOf(row.key).kind !== 'Pool' &&
      isOfNamespace(row.key, namespace, desired.poolUses) &&
      (only === '' || row.verdict === only || (only === 'trouble' && !isWell(row))) &&
      (search === '' || hasText(row, search, desired)),
  );
  const sorted = sortedBy(query.get('sort') ?? '', found, traffic);
  const pages = Math.max(1, Math.ceil(found.length / MAX_ROWS));
  const requested = Number.parseInt(query.get('page') ?? '1', 10);
  const page = Math.min(pages, Math.max(1, requested || 1));
  const shown = sorted.slice((page - 1) * MAX_ROWS, page * MAX_ROWS);
  return {
    rows: shown.map((row) => pageRowOf(row, traffic.of(row.key), traffic.history(row.key))),
    found: found.length,
    page,
    pages,
  };
}

function sortedBy(
  sort: string,
  worstFirst: readonly LoadBalancerSummary[],
  traffic: Pick<TrafficBook, 'of'>,
): readonly LoadBalancerSummary[] {
  const isDown = sort.startsWith('-');
  const column = isDown ? sort.slice(1) : sort;
  if (column === 'state') return isDown ? worstFirst : worstFirst.toReversed();
  if (column === 'name') {
    const byName = worstFirst.toSorted((a, b) => inNaturalOrder(a.key, b.key));
    return isDown ? byName.reverse() : byName;
  }
  if (!Object.hasOwn(NUMBERS, column)) return worstFirst;
  const numberOf = NUMBERS[column as keyof typeof NUMBERS];
  const turn = isDown ? -1 : 1;
  return worstFirst
    .map((row) => ({ row, number: numberOf(row, traffic) }))
    .sort((a, b) => compared(a.number, b.number, turn))
    .map(({ row }) => row);
}

/** An unknown number comes last in both directions. */
function compared(a: number, b: number, turn: 1 | -1): number {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(a)) - Number(Number.isNaN(b));
  return turn * (a - b);
}
