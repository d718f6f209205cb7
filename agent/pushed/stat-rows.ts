// Reads `show stat` for reports: all columns by name, and only what the text has. A removed server is still listed, and a pool
// without members counts as down while its last one waits for its deletion. Pure.

import { unreadable } from '../haproxy/socket/readings.ts';
import type { StatRow } from './pushed.ts';
import { OWN_PROXY } from './second-file.ts';
import type { PushedText } from './text/pushed-text.ts';

/** Errors: RUNTIME_REPLY. */
export function reportedRows(answer: string, { sections }: PushedText): readonly StatRow[] {
  const rows: StatRow[] = [];
  for (const row of statRows(answer)) {
    const [proxy = '', name = ''] = [row.get('pxname'), row.get('svname')];
    if (OWN_PROXY.test(proxy)) continue;
    const servers = sections.get(`backend ${proxy}`)?.servers;
    if (name === 'BACKEND' && servers?.size === 0) rows.push(new Map([...row, ['status', 'UP']]));
    else if (name === 'FRONTEND' || name === 'BACKEND' || (servers?.has(name) ?? true)) rows.push(row);
  }
  return rows;
}

/** Errors: RUNTIME_REPLY. */
export function statRows(answer: string): readonly StatRow[] {
  const [header = '', ...lines] = answer.split('\n');
  if (!header.startsWith('# pxname,')) throw unreadable('statistics', answer);
  const names = header.slice(2).split(',');
  return lines.filter(Boolean).map((line) => {
    const row = new Map<string, string>();
    for (const [at, value] of fieldsOf(line).entries()) if (names[at]) row.set(names[at], value);
    return row;
  });
}

/** A field with a comma or a quote stands between quotes, which are doubled inside it. */
function fieldsOf(line: string): readonly string[] {
  if (!line.includes('"')) return line.split(',');
  return [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(
    ([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain ?? '',
  );
}
