// AVA's own command line, with one repair: its TAP reporter crashes on a test that hangs or ends the process, and
// then names neither that test nor any after it (https://github.com/avajs/ava/issues/3461).

const ava = new URL('../node_modules/ava/', import.meta.url);

interface TestEvent {
  readonly err?: unknown;
}

interface TapReporter {
  writeTest(event: TestEvent, flags: unknown): void;
}

const reporter: { readonly default: { readonly prototype: TapReporter } } = await import(
  new URL('lib/reporters/tap.js', ava).href
);
const { prototype } = reporter.default;
const { writeTest } = prototype;
prototype.writeTest = function (event, flags) {
  writeTest.call(this, { ...event, err: serialised(event.err) }, flags);
};

/** The reporter makes such errors itself, and then takes them for what a worker has sent. */
function serialised(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  return { type: 'native', name: error.name, originalError: error, stack: error.stack };
}

await import(new URL('entrypoints/cli.js', ava).href);
