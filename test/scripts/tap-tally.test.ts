import test from 'ava';
import { tallyTap, verdictOf } from '../../scripts/tap-tally.ts';

const SUMMARY = '\n1..3\n# tests 3\n# pass 1\n# skip 1\n# fail 1\n';

test('tallyTap() counts passed, failed and skipped tests', (t) => {
  const output = `TAP version 13\nok 1 - a\nnot ok 2 - b\n  ---\n    message: x\n  ...\nok 3 - c # SKIP\n${SUMMARY}`;
  t.deepEqual(tallyTap(output, 1), { passed: 1, failed: ['b'], skipped: ['c'], failedFiles: [] });
});

test('tallyTap() ignores the output of tests and quotes in errors', (t) => {
  const output = [
    'ok 7 - printed by a test',
    'half a lineok 1 - a # of them',
    '#   ok 2 - logged',
    'not ok 2 - b # SKIP',
    '  ---',
    '    actual: |-',
    '      ok 3 - quoted',
    'ok 3 - quoted, too',
    '  ...',
    'ok 3 - c # SKIP',
    SUMMARY,
  ].join('\n');
  t.deepEqual(tallyTap(output, 1), { passed: 1, failed: ['b # SKIP'], skipped: ['c'], failedFiles: [] });
});

test('tallyTap() names the files of failed tests, unless a failure belongs to no file', (t) => {
  const output =
    'not ok 1 - b\n# pass 0\n# fail 1\n#   1.0 s  test/a.test.ts\n#   1 failed  test/a.test.ts\n';
  t.deepEqual(tallyTap(output, 1).failedFiles, ['test/a.test.ts']);
  t.deepEqual(tallyTap(output.replace('fail 1', 'fail 2'), 1).failedFiles, []);
});

const failing = test.macro({
  exec(t, output: string, exitCode: number | null, failed: readonly string[]) {
    t.deepEqual(tallyTap(output, exitCode).failed, failed);
  },
  title: (what) => `tallyTap() counts as failed ${what}`,
});

test('a run that ends early', failing, 'TAP version 13\nok 1 - a\n', 1, [
  'AVA ended without a summary, with exit status 1',
]);
test('a run that a signal ends', failing, 'ok 1 - a\n', null, ['AVA ended without a summary, by a signal']);
test('an exit status without a failed test', failing, 'ok 1 - a\n# pass 1\n# fail 0\n', 3, [
  'AVA ended with exit status 3',
]);
test('a run without tests', failing, 'TAP version 13\n\n1..0\n# tests 0\n# pass 0\n# fail 0\n', 0, [
  'No test ran',
]);
test('a test that only the summary counts', failing, 'not ok 1 - a\n# pass 0\n# fail 2\n', 1, [
  'a',
  'A test did not run to its end',
]);
test('a lost result', failing, 'ok 1 - a\n\n# pass 2\n# fail 0\n', 0, [
  'AVA counts 2 passed tests, its output shows 1',
]);
test('a test that is announced but not written', failing, 'not ok 1 - a # TODO\n# pass 0\n# fail 1\n', 1, [
  'a # TODO',
]);

test('verdictOf() is good without failures, and with skipped tests only if they are allowed', (t) => {
  const tally = { passed: 2, failed: [], skipped: [] };
  t.deepEqual(verdictOf(tally, false), { line: '2 passed, 0 failed, 0 skipped', good: true });
  t.deepEqual(verdictOf({ ...tally, skipped: ['a'] }, false), {
    line: '2 passed, 0 failed, 1 skipped',
    good: false,
  });
  t.true(verdictOf({ ...tally, skipped: ['a'] }, true).good);
  t.false(verdictOf({ ...tally, failed: ['a'] }, true).good);
});
