// Writes docs/benchmarks.md: what each row measures, from the heads of bench/rows, and the table of figures, from
// bench/results.json, if a run has left one. With --check it writes nothing; figures are not compared then, because each
// machine measures its own.

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Benchmark } from '../bench/support/row.ts';
import {
  benchmarkTable,
  type Explanation,
  withExplanations,
  withRows,
  withTable,
} from './benchmark-table.ts';
import { root } from './check.ts';
import { writeDocument } from './write-document.ts';

const PAGE = 'docs/benchmarks.md';
const results = join(root, 'bench/results.json');

const explanations = await explanationsOf(join(root, 'bench/rows'));
const names = explanations.flatMap(({ rows }) => rows);
const page = withExplanations(readFileSync(join(root, PAGE), 'utf8'), explanations);
const isMeasured = !process.argv.includes('--check') && existsSync(results);
writeDocument(PAGE, isMeasured ? withTable(page, tableOf(results)) : withRows(page, names));

function tableOf(file: string): string {
  const date = statSync(file).mtime.toISOString().slice(0, 10);
  return benchmarkTable(JSON.parse(readFileSync(file, 'utf8')), names, date);
}

async function explanationsOf(folder: string): Promise<readonly Explanation[]> {
  const explanations: Explanation[] = [];
  for (const file of readdirSync(folder).sort()) {
    const exported: Readonly<Record<string, unknown>> = await import(join(folder, file));
    const rows = Object.values(exported).flatMap((value) => (isBenchmark(value) ? value.rows : []));
    if (rows.length > 0) explanations.push({ rows, head: headOf(readFileSync(join(folder, file), 'utf8')) });
  }
  return explanations;
}

function headOf(text: string): string {
  const lines = text.split('\n');
  const end = lines.findIndex((line) => !line.startsWith('//'));
  return lines
    .slice(0, end)
    .filter((line) => !line.startsWith('// Why: '))
    .map((line) => line.slice(2).trim())
    .join(' ');
}

function isBenchmark(value: unknown): value is Benchmark {
  return typeof value === 'object' && value !== null && 'rows' in value && 'run' in value;
}
