// Counts the tests in the TAP output of ava-tap.ts. A difference between the lines of the tests and AVA's own summary is a
// failure. Pure.

export interface Tally {
  readonly passed: number;
  /** Titles. */
  readonly failed: readonly string[];
  readonly skipped: readonly string[];
  /** The files of the failed tests; empty if a failure belongs to no file, such as a crash. */
  readonly failedFiles: readonly string[];
}

/** `exitCode` is AVA's; null if a signal ended it. */
export function tallyTap(output: string, exitCode: number | null): Tally {
  let passed = 0;
  const failed: string[] = [];
  const skipped: string[] = [];
  let next = 1;
  let inDetails = false;
  const announced = { pass: -1, fail: -1 };
  const failedFiles = new Map<string, number>();
  for (const line of output.split('\n')) {
    if (inDetails) {
      inDetails = line !== '  ...';
      continue;
    }
    if (line === '  ---') inDetails = true;
    const [, counted, count] = /^# (pass|fail) (\d+)$/.exec(line) ?? [];
    if (counted === 'pass' || counted === 'fail') announced[counted] = Number(count);
    const [, failures, file] = /^# {3}(\d+) failed {2}(.*)$/.exec(line) ?? [];
    if (file !== undefined) failedFiles.set(file, Number(failures));
    // A test can print a text without a line end before this line, so the number identifies the line.
    const result = line.startsWith('#   ') ? null : new RegExp(`(not ok|ok) ${next} - (.*)$`).exec(line);
    if (result === null) continue;
    next++;
    const [, verdict, title = ''] = result;
    if (verdict === 'not ok') failed.push(title);
    else if (title.endsWith('# SKIP')) skipped.push(title.replace(/\s*# SKIP$/, ''));
    else passed++;
  }
  const end = exitCode === null ? 'by a signal' : `with exit status ${exitCode}`;
  if (announced.fail < 0) failed.push(`AVA ended without a summary, ${end}`);
  else if (announced.pass !== passed)
    failed.push(`AVA counts ${announced.pass} passed tests, its output shows ${passed}`);
  // AVA counts tests that did not begin because their file ended early.
  for (let i = failed.length; i < announced.fail; i++) failed.push('A test did not run to its end');
  if (failed.length === 0 && exitCode !== 0) failed.push(`AVA ended ${end}`);
  if (failed.length === 0 && passed === 0 && skipped.length === 0) failed.push('No test ran');
  const ofFiles = [...failedFiles.values()].reduce((sum, count) => sum + count, 0);
  return { passed, failed, skipped, failedFiles: ofFiles === failed.length ? [...failedFiles.keys()] : [] };
}

/** The last line of a run, and whether the run is good. */
export function verdictOf(
  tally: Pick<Tally, 'passed' | 'failed' | 'skipped'>,
  allowSkip: boolean,
): { readonly line: string; readonly good: boolean } {
  const { passed, failed, skipped } = tally;
  return {
    line: `${passed} passed, ${failed.length} failed, ${skipped.length} skipped`,
    good: failed.length === 0 && (allowSkip || skipped.length === 0),
  };
}
