import test from 'ava';
import { row } from '../../bench/support/row.ts';
import { benchmarkTable, explainedRows, tableRows, withTable } from '../../scripts/benchmark-table.ts';

const PAGE =
  '| `a` | one |\n| `b` | two |\n\n<!-- table: begin -->\n\nold\n\n<!-- table: end -->\n\nThe end.\n';
const RESULTS = {
  versions: { headgate: '0.1.0', node: '24.1.0', haproxy: '2.6.12' },
  machine: { cpu: 'Some', cpus: 2, memoryMB: 1, kernel: '6.1', openFiles: 1 },
  rows: [
    row({
      name: 'a',
      value: 3,
      unit: 'ms',
      target: '≤ 2 ms',
      met: false,
      reference: { name: 'the bound', value: 2 },
    }),
  ],
};

test('benchmarkTable() gives each row a line, and one that was not measured says so', (t) => {
  const table = benchmarkTable(RESULTS, ['a', 'b'], '2026-01-02');
  t.regex(table, /^Measured on 2026-01-02: 2 processors \(Some\), Linux 6\.1, HAProxy 2\.6\.12,/);
  t.true(table.includes('\n| `a` | 3 ms | ≤ 2 ms | **missed** | the bound: 2 | 1.5 |\n'));
  t.true(table.endsWith('\n| `b` | not measured in this run | | | | |'));
});

test('withTable() replaces the text between the markers, and only that', (t) => {
  const page = withTable(PAGE, '| `a` | 1 |');
  t.is(page, PAGE.replace('old', '| `a` | 1 |'));
  t.deepEqual(explainedRows(page), ['a', 'b']);
  t.deepEqual(tableRows(page), ['a']);
  t.throws(() => withTable('No markers', ''), { message: /has no <!-- table: begin -->/ });
});
