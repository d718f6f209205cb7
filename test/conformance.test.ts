import { readFileSync } from 'node:fs';
import test from 'ava';
import { conformance } from './conformance.ts';
import { conformanceFaults, testTitlesOf } from './support/repository/test-titles.ts';

test('Every row of the table of conformance has its tests, and they are there', (t) => {
  t.deepEqual(conformanceFaults(conformance, read), []);
});

test('conformanceFaults() finds a test that is gone, a row without any, a file that is gone, and a row twice', (t) => {
  const files: Readonly<Record<string, string>> = { 'a.test.ts': "test('One', (t) => {});" };
  const row = { field: 'spec.a', rule: ['It is.'] };
  const faultsOf = (...rows: Parameters<typeof conformanceFaults>[0][number]['rows']) =>
    conformanceFaults([{ title: 'S', rows }], (path) => files[path]);
  t.deepEqual(faultsOf({ ...row, shownBy: { 'a.test.ts': ['One'] } }), []);
  t.deepEqual(faultsOf({ ...row, notYet: 'All of it.', shownBy: {} }), []);
  t.deepEqual(faultsOf({ ...row, shownBy: {} }), ['spec.a: No test shows it']);
  const gone = { 'a.test.ts': ['Two'], 'b.test.ts': ['One'], 'cases/': ['c'] };
  t.deepEqual(faultsOf({ ...row, shownBy: gone }), [
    'spec.a: test/a.test.ts has no "Two"',
    'spec.a: test/b.test.ts has no "One"',
    'spec.a: test/cases/ has no "c"',
  ]);
  const once = { ...row, shownBy: { 'a.test.ts': ['One'] } };
  t.deepEqual(faultsOf(once, once), ['spec.a: There are two rows for it']);
});

test('testTitlesOf() finds every form of a test, and none that does not run', (t) => {
  const titles = testTitlesOf(
    [
      "test('Plain', (t) => {});",
      "test.serial(\n  'On its own line',\n  async (t) => {},\n);",
      'test("It is Kubernetes\' own", (t) => {});',
      "test('It\\'s escaped', (t) => {});",
      "test(macro, 'Given to a macro', 1);",
      `test(\`A value of \${value} (whatever)\`, (t) => {});`,
      "test.skip('Skipped', (t) => {});",
      "test.todo('To be written');",
      "// test('Commented out', (t) => {});",
      "/* test('Commented out, too', (t) => {}); */",
      "t.is('Not a title', '');",
    ].join('\n'),
  );
  for (const title of [
    'Plain',
    'On its own line',
    "It is Kubernetes' own",
    "It's escaped",
    'Given to a macro',
    'A value of 3 (whatever)',
  ])
    t.true(titles.has(title), title);
  for (const title of [
    'Skipped',
    'To be written',
    'Commented out',
    'Commented out, too',
    'Not a title',
    'A value of',
  ])
    t.false(titles.has(title), title);
});

function read(path: string): string | undefined {
  try {
    return readFileSync(new URL(path, import.meta.url), 'utf8');
  } catch {
    return undefined;
  }
}
