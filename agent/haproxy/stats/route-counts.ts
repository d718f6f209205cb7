// What a worker counts in stick tables (templates/haproxy/routes.mustache): what each check of a listener has refused, and
// responses of each route by status class. A route has numbers like those of `show stat`.
// Why: docs/design/decisions/0057-counts-of-routes.md

import { Slice } from '../../base/slice.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';
import { refusalTable } from '../../model/names.ts';
import type { Lane } from '../socket/pipeline.ts';
import type { Runtime } from '../socket/runtime.ts';
import { allColumns, positionOf } from './columns.ts';
import { refusalRows, routeRefusalRows } from './refusal-counts.ts';
import type { StatRow } from './stat-rows.ts';

/** The table, and in a row the name of the proxy. */
export const ROUTE_COUNTS = 'headgate:routes';

/** The columns of the table's counters, in their order. */
const CLASSES = (['hrsp_1xx', 'hrsp_2xx', 'hrsp_3xx', 'hrsp_4xx', 'hrsp_5xx'] as const).map(positionOf);

export interface TableReading {
  readonly lane: Lane;
  /** The names of those with routes for HTTP. */
  readonly listeners: readonly string[];
  readonly countsRoutes: boolean;
}

/** No rows of a table that the worker does not have. Errors: those of Runtime.askAll(). */
export async function readTables(
  runtime: Pick<Runtime, 'askAll'>,
  { lane, listeners, countsRoutes }: TableReading,
  onRow: (row: StatRow) => void,
): Promise<void> {
  const slice = new Slice();
  const tables = [...listeners.map(refusalTable), ...(countsRoutes ? [ROUTE_COUNTS] : [])];
  const answers = await runtime.askAll(
    tables.map((table) => `show table ${table}`),
    { lane },
  );
  for (const [at, answer] of answers.entries())
    for (const line of answer.split('\n')) {
      for (const row of parseEntry(listeners[at], line)) onRow(row);
      if (slice.isOver) await slice.breathe();
    }
}

/**
 * `0x55d0: key=HTTPRoute/default/api use=0 exp=3599479 gpc0=0 gpc1=2 ...`, in the table of a listener with its namespace as the
 * key; [] for another line.
 */
export function parseEntry(listener: string | undefined, line: string): readonly StatRow[] {
  const [, name] = / key=(\S+) /.exec(line) ?? [];
  if (name === undefined) return [];
  const counts = Array.from(line.matchAll(/ gpc\d+=(\d+)/g), ([, count]) => Number(count));
  if (listener !== undefined) return refusalRows(listener, counts);
  const values = allColumns.map(() => Number.NaN);
  for (const [at, column] of CLASSES.entries()) values[column] = counts[at] ?? Number.NaN;
  const responses = { proxy: ROUTE_COUNTS, name, values, status: '', checkStatus: '', mode: 'http' };
  return [responses, ...routeRefusalRows(name, counts)];
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
