// Writes the table of docs/benchmarks.md from bench/results.json, if a run has left one. With --check it writes nothing
// and fails if the page does not explain, or the table does not have, each row of bench/rows; values are not compared,
// because each machine measures its own.

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Benchmark } from '../bench/support/row.ts';
import { benchmarkTable, explainedRows, tableRows, withTable } from './benchmark-table.ts';
import { root } from './check.ts';
import { writeDocument } from './write-document.ts';

const PAGE = 'docs/benchmarks.md';
const results = join(root, 'bench/results.json');

const page = readFileSync(join(root, PAGE), 'utf8');
const explained = explainedRows(page);
const isMeasured = !process.argv.includes('--check') && existsSync(results);
const written = isMeasured ? withTable(page, tableOf(results)) : page;
if (isMeasured) writeDocument(PAGE, written);
const rows = await benchmarkRows();
expectSame('The text', explained, rows);
expectSame('The table', tableRows(written), rows);

function tableOf(file: string): string {
  const date = statSync(file).mtime.toISOString().slice(0, 10);
  return benchmarkTable(JSON.parse(readFileSync(file, 'utf8')), explained, date);
}

async function benchmarkRows(): Promise<readonly string[]> {
  const folder = join(root, 'bench/rows');
  const names: string[] = [];
  for (const file of readdirSync(folder)) {
    const exported: Readonly<Record<string, unknown>> = await import(join(folder, file));
    for (const value of Object.values(exported)) if (isBenchmark(value)) names.push(...value.rows);
  }
  return names;
}

function isBenchmark(value: unknown): value is Benchmark {
  return typeof value === 'object' && value !== null && 'rows' in value && 'run' in value;
}

function expectSame(what: string, found: readonly string[], expected: readonly string[]): void {
  const missing = expected.filter((name) => !found.includes(name));
  const unknown = found.filter((name) => !expected.includes(name));
  for (const name of missing) console.error(`${what} of ${PAGE} lacks the row ${name}`);
  for (const name of unknown) console.error(`${what} of ${PAGE} has a row ${name}, which does not exist`);
  if (missing.length + unknown.length > 0) process.exitCode = 1;
}
