import test from 'ava';
import { row } from '../../bench/support/row.ts';
import { benchmarkTable, withExplanations, withRows, withTable } from '../../scripts/benchmark-table.ts';

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
  t.throws(() => withTable('No markers', ''), { message: /has no <!-- table: begin -->/ });
});

test('withRows() keeps the figures of rows that there are, and adds a line for each other row', (t) => {
  const table = '| row | value |\n|---|---|\n| `a` | 1 |\n| `gone` | 2 |';
  const page = withRows(PAGE.replace('old', table), ['b', 'a']);
  t.is(
    page,
    PAGE.replace(
      'old',
      '| row | value |\n|---|---|\n| `b` | not measured in this run | | | | |\n| `a` | 1 |',
    ),
  );
  t.is(withRows(page, ['b', 'a']), page);
});

test('withExplanations() writes what the rows of each file measure, without their names if these are all', (t) => {
  const begin = '<!-- Written by scripts/write-benchmark-docs.ts from bench/rows/. -->';
  const end = '<!-- The end of what is written. -->';
  const explanations = [
    { rows: ['a', 'b'], head: '`a`, `b`: the time. Reference: none.' },
    { rows: ['c', 'd'], head: '`c`: the time. `d`: the memory.' },
  ];
  t.is(
    withExplanations(`One.\n${begin}\nold\n${end}\nTwo.\n`, explanations),
    `One.\n${begin}\n\n| rows | what is measured |\n|---|---|\n| \`a\`, \`b\` | The time. Reference: none. |\n| \`c\`, \`d\` | \`c\`: the time. \`d\`: the memory. |\n\n${end}\nTwo.\n`,
  );
});
