// The table of docs/benchmarks.md, made from bench/results.json, and the page with another table in it. Pure.

import type { Machine } from '../bench/support/machine.ts';
import type { Row } from '../bench/support/row.ts';
import { firstCells } from '../test/support/repository/markdown.ts';

/** What bench/results.json holds. */
export interface Results {
  readonly versions: Readonly<Record<string, string>>;
  readonly machine: Machine;
  readonly rows: readonly Row[];
}

const BEGIN = '<!-- table: begin -->';
const END = '<!-- table: end -->';

/** The names of the rows that the text before the table explains, in its order. */
export function explainedRows(page: string): readonly string[] {
  return firstCells(partsOf(page).before);
}

/** The names of the rows that the table has. */
export function tableRows(page: string): readonly string[] {
  return firstCells(partsOf(page).table);
}

/** One line for each of `names`; a row that `results` lacks says so. `date`: ISO 8601. */
export function benchmarkTable(
  { versions, machine, rows }: Results,
  names: readonly string[],
  date: string,
): string {
  const byName = new Map(rows.map((row) => [row.name, row]));
  const { headgate, haproxy, node } = versions;
  return [
    `Measured on ${date}: ${machine.cpus} processors (${machine.cpu}), Linux ${machine.kernel}, HAProxy ${haproxy}, Node ${node}, Headgate ${headgate}.`,
    '',
    '| row | value | target | | reference in the same run | ratio |',
    '|---|---|---|---|---|---|',
    ...names.map((name) => line(name, byName.get(name))),
  ].join('\n');
}

export function withTable(page: string, table: string): string {
  const { before, after } = partsOf(page);
  return `${before}${BEGIN}\n\n${table}\n\n${END}${after}`;
}

function line(name: string, row: Row | undefined): string {
  if (row === undefined) return `| \`${name}\` | not measured in this run | | | | |`;
  const { value, unit, target, met, reference, ratio } = row;
  const cells = [
    `\`${name}\``,
    `${value} ${unit}`,
    target,
    met ? 'met' : '**missed**',
    `${reference.name}: ${reference.value}`,
    ratio ?? '–',
  ];
  return `| ${cells.join(' | ')} |`;
}

/** Errors: Error if the page has no markers. */
function partsOf(page: string): { readonly before: string; readonly table: string; readonly after: string } {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`The page has no ${BEGIN} before ${END}`);
  return { before: page.slice(0, begin), table: page.slice(begin, end), after: page.slice(end + END.length) };
}
