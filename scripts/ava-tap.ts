// AVA's own command line, with one repair: its TAP reporter crashes on a test that hangs or ends the process, and
// then names neither that test nor any after it (https://github.com/avajs/ava/issues/3461). And it ends with the tests
// that took longest: '#   12.3 s  TITLE'.

const ava = new URL('../node_modules/ava/', import.meta.url);

interface TestEvent {
  readonly err?: unknown;
  readonly testFile: string;
  readonly title: string;
  /** Milliseconds. */
  readonly duration?: number;
}

interface TapReporter {
  readonly reportStream: NodeJS.WritableStream;
  prefixTitle(testFile: string, title: string): string;
  writeTest(event: TestEvent, flags: unknown): void;
  endRun(): void;
}

/** Milliseconds. */
const LONG = 1_000;
const LONGEST = 20;

const reporter: { readonly default: { readonly prototype: TapReporter } } = await import(
  new URL('lib/reporters/tap.js', ava).href
);
const { prototype } = reporter.default;
const { writeTest, endRun } = prototype;
const took: { readonly duration: number; readonly title: string }[] = [];
prototype.writeTest = function (event, flags) {
  const { duration = 0, testFile, title } = event;
  if (duration >= LONG) took.push({ duration, title: this.prefixTitle(testFile, title) });
  writeTest.call(this, { ...event, err: serialised(event.err) }, flags);
};
prototype.endRun = function () {
  endRun.call(this);
  const longest = took.sort((a, b) => b.duration - a.duration).slice(0, LONGEST);
  for (const { duration, title } of longest)
    this.reportStream.write(`#   ${(duration / 1_000).toFixed(1)} s  ${title}\n`);
};

/** The reporter makes such errors itself, and then takes them for what a worker has sent. */
function serialised(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  return { type: 'native', name: error.name, originalError: error, stack: error.stack };
}

await import(new URL('entrypoints/cli.js', ava).href);
