// AVA's command line with two fixes and an addition. AVA's TAP reporter crashes on a test that hangs or ends its process
// (https://github.com/avajs/ava/issues/3461), and on an error without a place in its stack, such as those of
// node:fs/promises. The addition prints at the end the slowest files, '#   12.3 s  test/a.test.ts', and the files with
// failed tests and their number, '#   2 failed  test/a.test.ts'.

import { isMapping } from '../agent/base/validate.ts';

const ava = new URL('../node_modules/ava/', import.meta.url);

interface TestEvent {
  readonly err?: unknown;
}

interface StateChange {
  readonly type: string;
  readonly testFile?: string;
}

interface TapReporter {
  readonly reportStream: NodeJS.WritableStream;
  relativeFile(file: string): string;
  consumeStateChange(change: StateChange): void;
  writeTest(event: TestEvent, flags: unknown): void;
  writeCrash(event: TestEvent, title?: string): void;
  endRun(): void;
}

const SLOWEST_FILES = 20;

const reporter: { readonly default: { readonly prototype: TapReporter } } = await import(
  new URL('lib/reporters/tap.js', ava).href
);
const { prototype } = reporter.default;
const { consumeStateChange, writeTest, writeCrash, endRun } = prototype;
/** File → its start, by performance.now(). */
const begun = new Map<string, number>();
/** File → milliseconds. */
const took = new Map<string, number>();
/** File → its failed tests. Failed hooks are not counted: tests behind them did not run. */
const failed = new Map<string, number>();
prototype.consumeStateChange = function (change) {
  const { type, testFile } = change;
  const begin = testFile && begun.get(testFile);
  if (testFile && begin === undefined) begun.set(testFile, performance.now());
  else if (testFile && begin && type.startsWith('worker-f')) took.set(testFile, performance.now() - begin);
  if (testFile && type === 'test-failed') failed.set(testFile, (failed.get(testFile) ?? 0) + 1);
  consumeStateChange.call(this, change);
};
prototype.writeTest = function (event, flags) {
  writeTest.call(this, { ...event, err: placed(serialised(event.err)) }, flags);
};
prototype.writeCrash = function (event, title) {
  writeCrash.call(this, { ...event, err: placed(serialised(event.err)) }, title);
};
prototype.endRun = function () {
  endRun.call(this);
  const slowest = [...took].sort(([, a], [, b]) => b - a).slice(0, SLOWEST_FILES);
  for (const [file, time] of slowest)
    this.reportStream.write(`#   ${(time / 1_000).toFixed(1)} s  ${this.relativeFile(file)}\n`);
  for (const [file, count] of failed)
    this.reportStream.write(`#   ${count} failed  ${this.relativeFile(file)}\n`);
};

/** The reporter creates such errors itself but expects the form that a worker sends. */
function serialised(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  return { type: 'native', name: error.name, originalError: error, stack: error.stack };
}

/** The reporter reads the place of an error from the second line of its stack. */
function placed(error: unknown): unknown {
  if (!isMapping(error) || typeof error.stack !== 'string' || error.stack.trim().includes('\n')) return error;
  return { ...error, stack: `${error.stack}\n    at an unknown place` };
}

await import(new URL('entrypoints/cli.js', ava).href);
