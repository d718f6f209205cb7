// The responses of each route by status class, which a worker counts in a stick table (templates/haproxy/routes.mustache). A
// route has numbers like those of `show stat`.
// Why: docs/design/decisions/0057-counts-of-routes.md

import { Slice } from '../../base/slice.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';
import type { Lane } from '../socket/pipeline.ts';
import type { Runtime } from '../socket/runtime.ts';
import { allColumns, positionOf } from './columns.ts';
import type { StatRow } from './stat-rows.ts';

/** The table, and in a row the name of the proxy. */
export const ROUTE_COUNTS = 'headgate:routes';

/** The columns of the table's counters, in their order. */
const CLASSES = (['hrsp_1xx', 'hrsp_2xx', 'hrsp_3xx', 'hrsp_4xx', 'hrsp_5xx'] as const).map(positionOf);

/** No rows if the worker has no such table, because it has no routes. Errors: those of Runtime.ask(). */
export async function readRouteCounts(
  runtime: Pick<Runtime, 'ask'>,
  lane: Lane,
  onRow: (row: StatRow) => void,
): Promise<void> {
  const answer = await runtime.ask(`show table ${ROUTE_COUNTS}`, { lane });
  const slice = new Slice();
  for (const line of answer.split('\n')) {
    const row = parseRouteCounts(line);
    if (row !== undefined) onRow(row);
    if (slice.isOver) await slice.breathe();
  }
}

/** `0x55d0: key=HTTPRoute/default/api use=0 exp=3599479 gpc0=0 gpc1=2 ...`; undefined for another line. */
export function parseRouteCounts(line: string): StatRow | undefined {
  const [, name] = / key=(\S+) /.exec(line) ?? [];
  if (name === undefined) return undefined;
  const values = allColumns.map(() => Number.NaN);
  for (const [, at = '', count] of line.matchAll(/ gpc(\d)=(\d+)/g)) {
    const column = CLASSES[Number(at)];
    if (column !== undefined) values[column] = Number(count);
  }
  return { proxy: ROUTE_COUNTS, name, values, status: '', checkStatus: '', mode: 'http' };
}

/** The names that the routes of a load balancer have in the table. */
export function countedRoutes({ listeners }: LoadBalancer): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { routing } of listeners) {
    if (routing?.kind !== 'http') continue;
    for (const { hosts } of routing.sections)
      for (const { entries } of hosts)
        for (const { rule } of entries) names.add(rule.route.replace(' ', '/'));
  }
  return names;
}

/** `kind="HTTPRoute",namespace="default",route="api"` */
export function routeSeries(name: string): string {
  const [kind, namespace, route] = name.split('/', 3);
  return `kind="${kind}",namespace="${namespace}",route="${route}"`;
}
