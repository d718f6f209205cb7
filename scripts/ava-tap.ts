// AVA's own command line, with a repair: its TAP reporter crashes on a test that hangs or ends the process
// (https://github.com/avajs/ava/issues/3461), and on an error that says no place, as those of node:fs/promises do; it
// then names neither that test nor any after it. And it ends with the files that took longest:
// '#   12.3 s  test/a.test.ts'.

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

const LONGEST = 20;

const reporter: { readonly default: { readonly prototype: TapReporter } } = await import(
  new URL('lib/reporters/tap.js', ava).href
);
const { prototype } = reporter.default;
const { consumeStateChange, writeTest, writeCrash, endRun } = prototype;
/** By file, performance.now(). */
const begun = new Map<string, number>();
const took = new Map<string, number>();
prototype.consumeStateChange = function (change) {
  const { type, testFile } = change;
  const begin = testFile && begun.get(testFile);
  if (testFile && begin === undefined) begun.set(testFile, performance.now());
  else if (testFile && begin && type.startsWith('worker-f')) took.set(testFile, performance.now() - begin);
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
  const longest = [...took].sort(([, a], [, b]) => b - a).slice(0, LONGEST);
  for (const [file, time] of longest)
    this.reportStream.write(`#   ${(time / 1_000).toFixed(1)} s  ${this.relativeFile(file)}\n`);
};

/** The reporter makes such errors itself, and then takes them for what a worker has sent. */
function serialised(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  return { type: 'native', name: error.name, originalError: error, stack: error.stack };
}

/** The second line of the stack is taken for the place of the error. */
function placed(error: unknown): unknown {
  if (!isMapping(error) || typeof error.stack !== 'string' || error.stack.trim().includes('\n')) return error;
  return { ...error, stack: `${error.stack}\n    at a place that is not known` };
}

await import(new URL('entrypoints/cli.js', ava).href);
