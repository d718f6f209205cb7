// Builds HAProxy's answers to `show stat NUMBER KINDS -1`.

import { allColumns, type Column } from '../../agent/haproxy/stats/columns.ts';

const HEADER = `# pxname,svname,${allColumns.join(',')},status,check_status,mode,`;
const SERVERS = ['FRONTEND', 'BACKEND', '10.0.0.1:80'];

/** Each proxy has a frontend, a backend and one server, whose other columns are 0. */
export function proxyRows(
  question: string,
  proxies: readonly string[],
  values: Partial<Record<Column, number>> = {},
): string {
  const [, , number, kinds] = question.split(' ').map(Number);
  const proxy = proxies[(number ?? 0) - 1];
  const rows = SERVERS.flatMap((server, type) => {
    if (proxy === undefined || ((kinds ?? 0) & (1 << type)) === 0) return [];
    const numbers = allColumns.map((column) => values[column] ?? 0);
    return [`${proxy},${server},${numbers.join(',')},UP,,tcp,`];
  });
  return [HEADER, ...rows].join('\n');
}
