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

const EXPLANATION_BEGIN = '<!-- Written by scripts/write-benchmark-docs.ts from bench/rows/. -->';
const EXPLANATION_END = '<!-- The end of what is written. -->';

/** A file of bench/rows: the rows that it measures, and the comment that it begins with. */
export interface Explanation {
  readonly rows: readonly string[];
  readonly head: string;
}

/** The page with what each row measures. */
export function withExplanations(page: string, explanations: readonly Explanation[]): string {
  const [before = '', rest = ''] = page.split(EXPLANATION_BEGIN);
  const lines = explanations.map(
    ({ rows, head }) => `| ${rows.map((row) => `\`${row}\``).join(', ')} | ${withoutNames(head, rows)} |`,
  );
  const table = `| rows | what is measured |\n|---|---|\n${lines.join('\n')}`;
  return `${before}${EXPLANATION_BEGIN}\n\n${table}\n\n${rest.slice(rest.indexOf(EXPLANATION_END))}`;
}

/** A head often begins with the names of all its rows, which stand beside it. */
function withoutNames(head: string, rows: readonly string[]): string {
  const [prefix = ''] = /^(?:`[\w-]+`(?:, )?)+: /.exec(head) ?? [];
  const text = rows.every((row) => prefix.includes(`\`${row}\``)) ? head.slice(prefix.length) : head;
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`.replaceAll('|', '\\|');
}

/** The page whose table has exactly these rows: those without a figure say so. */
export function withRows(page: string, names: readonly string[]): string {
  const lines = partsOf(page).table.replace(BEGIN, '').trim().split('\n');
  const known = new Map(lines.map((each) => [firstCells(each)[0], each]));
  const head = lines.filter((each) => firstCells(each).length === 0);
  return withTable(
    page,
    [...head, ...names.map((name) => known.get(name) ?? line(name, undefined))].join('\n'),
  );
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
