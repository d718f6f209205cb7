import { fileURLToPath } from 'node:url';
import test from 'ava';
import { conformanceFaults, shownBy } from '../support/repository/shown-by.ts';
import { testSources } from '../support/repository/test-sources.ts';
import { conformance } from './conformance.ts';
import type { Row } from './row.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

const row: Row = { field: 'spec.a', rule: ['It is.'] };

test('Every row of the table of conformance has a test that shows it, and every tag names a row', (t) => {
  t.deepEqual(conformanceFaults(conformance, shownBy(testSources(root))), []);
});

test('conformanceFaults() finds a row without a test, without a rule, and twice', (t) => {
  const faultsOf = (...rows: Row[]) =>
    conformanceFaults([{ title: 'S', rows }], [{ field: 'spec.a', path: 'a.test.ts', title: 'One' }]);
  t.deepEqual(faultsOf(row), []);
  t.deepEqual(faultsOf(row, { field: 'spec.b', rule: ['It is.'], notYet: 'All of it.' }), []);
  t.deepEqual(faultsOf(row, { field: 'spec.b', rule: ['It is.'] }), ['spec.b: No test shows it']);
  t.deepEqual(faultsOf({ field: 'spec.a', rule: [] }), ['spec.a: It has no rule']);
  t.deepEqual(faultsOf(row, row), ['spec.a: There are two rows for it']);
});

test('conformanceFaults() finds a tag without a row and a tag without a test', (t) => {
  const faultsOf = (text: string) =>
    conformanceFaults([{ title: 'S', rows: [row] }], shownBy([{ path: 'a.test.ts', text }]));
  t.deepEqual(faultsOf("// Conformance: spec.a\ntest('One', (t) => {});"), []);
  t.deepEqual(faultsOf("// Conformance: spec.a\n// Conformance: spec.b\ntest('One', (t) => {});"), [
    'test/a.test.ts: There is no row "spec.b"',
  ]);
  for (const other of ["test.skip('One', (t) => {});", "test.todo('One');", '// A comment', ''])
    t.deepEqual(
      faultsOf(`// Conformance: spec.a\n${other}`),
      ['test/a.test.ts: No test follows "Conformance: spec.a"'],
      other,
    );
});

test('shownBy() finds every form of a test, and cases', (t) => {
  const text = [
    "// Conformance: a\ntest('Plain', (t) => {});",
    "test('Untagged', (t) => {});",
    "// A comment\n// Conformance: a\n// Conformance: b, c\ntest.serial(\n  'Two rows',\n  async (t) => {},\n);",
    '// Conformance: a\ntest("It is Kubernetes\' own", (t) => {});',
    "// Conformance: a\ntest('It\\'s escaped', (t) => {});",
    "// Conformance: a\nwithRoot(macro, 'Given to a macro', 1);",
    '  // Conformance: a\n  test(`A value of $' + '{value} (whatever)`, (t) => {});',
  ].join('\n');
  t.deepEqual(
    shownBy([
      { path: 'x.test.ts', text },
      {
        path: 'cases/some-case.txt',
        text: '# Conformance: a\n# Conformance: b\nkind: Service\n# Conformance: c\n',
      },
    ]).map(({ field, title }) => `${field}: ${title}`),
    [
      'a: Plain',
      'a: Two rows',
      'b, c: Two rows',
      "a: It is Kubernetes' own",
      "a: It's escaped",
      'a: Given to a macro',
      'a: A value of … (whatever)',
      'a: some case',
      'b: some case',
    ],
  );
});
