// Runs tests and prints as its last line `N passed, N failed, N skipped`.
// test.ts [--fast] [--again] [--directory DIR] [FILE...] runs the named files and folders, or the checks and all tests.
// --fast runs only tests that need nothing but Node, without the checks, and prints no line for a test that passes.
// In a run of all tests, or with --again, a file with a failed test runs once more, alone. If it passes then, its failed
// tests count as passed and are printed as `PASSED ALONE`. If more than eight files have failed tests, none runs again
// (docs/design/decisions/0083-a-failed-test-runs-once-more.md).
// A failed check counts as a failed test. A skipped test makes the run fail, unless ALLOW_SKIP=1.

import { availableParallelism } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { PROGRAMS } from '../test/conformance/gateway-tests.ts';
import { fastTests, testFiles } from '../test/support/repository/tests-of.ts';
import { allChecks, root, runChecks } from './check.ts';
import { onlyNode } from './only-node.ts';
import { runAva } from './run-ava.ts';
import { runProgram } from './run-program.ts';
import { type Tally, tallyTap, verdictOf } from './tap-tally.ts';

/** Built before the tests start, because a test would time out while it waits for a build. */
const KUBE_PROGRAMS = [
  ...[
    ...PROGRAMS,
    'kubectl',
    'helm',
    'h2spec',
    'ingress2gateway',
    'external-dns',
    'oauth2-proxy',
    'mockoidc',
  ],
  ...['grpc-interop-client', 'grpc-interop-server'],
];

/** One more than processors, because a few of the fast tests wait for timers. */
const FAST_CONCURRENCY = availableParallelism() + 1;

/** More files fail for a fault, not for a busy machine. */
const MAX_SECOND_RUNS = 8;

const { values, positionals } = parseArgs({
  options: {
    fast: { type: 'boolean', default: false },
    again: { type: 'boolean', default: false },
    directory: { type: 'string', default: root },
  },
  allowPositionals: true,
});
const { fast: isFast, directory } = values;
const isWhole = !isFast && positionals.length === 0 && directory === root;
const allowSkip = process.env.ALLOW_SKIP === '1';

// The checks run in the meantime.
const building = isWhole ? buildKube() : true;
const failures = isWhole ? (await runChecks(allChecks())).map((name) => `Check: ${name}`) : [];
const hasKube = await building;
// Without an API server each test that needs one fails and reports the reason.
if (!hasKube && !allowSkip) failures.push('Check: a Kubernetes API server can be built');

// `npm test` puts the programs of npm's packages first, which have another nft.
const path = (process.env.PATH ?? '').split(':').filter((folder) => !folder.endsWith('node_modules/.bin'));
const env = { ...process.env, PATH: path.join(':'), ...(hasKube ? {} : { KUBE_BUILD: 'no' }) };
const run = await (isFast
  ? runAva(directory, ['-c', `${FAST_CONCURRENCY}`, ...chosen(fastTests(directory))], {
      env: onlyNode(env, join(directory, '.cache/only-node')),
      quiet: true,
    })
  : runAva(directory, isWhole ? [] : chosen(testFiles(directory)), { env }));

const tally = tallyTap(run.output, run.exitCode);
const { passedAlone, failed, left } = await secondRun(tally, run.left);
const { skipped } = tally;
const passed = tally.passed + Math.max(0, tally.failed.length - failed.length);
failures.push(...failed, ...left.map((command) => `A test left a process behind: ${command}`));
for (const title of skipped) console.log(`SKIPPED: ${title}`);
for (const title of passedAlone) console.log(`PASSED ALONE: ${title}`);
for (const title of failures) console.log(`FAILED: ${title}`);
const { line, good } = verdictOf({ passed, failed: failures, skipped }, allowSkip);
if (!good && failures.length === 0)
  console.log('The run fails because tests were skipped: ALLOW_SKIP=1 allows that');
console.log(line);
process.exitCode = good ? 0 : 1;

/** Runs the files with failed tests once more, if they are few; see the head of this file. */
async function secondRun(
  { failed, failedFiles }: Tally,
  left: readonly string[],
): Promise<{
  readonly passedAlone: readonly string[];
  readonly failed: readonly string[];
  readonly left: readonly string[];
}> {
  const isRepeated = values.again || isWhole;
  if (!isRepeated || failedFiles.length === 0 || failedFiles.length > MAX_SECOND_RUNS || failures.length > 0)
    return { passedAlone: [], failed, left };
  for (const title of failed) console.log(`Failed beside other tests: ${title}`);
  console.log(`These files run once more, alone: ${failedFiles.join(', ')}`);
  const again = await runAva(directory, ['-c', '1', ...failedFiles], { env });
  const { failed: failedAgain } = tallyTap(again.output, again.exitCode);
  return failedAgain.length === 0
    ? { passedAlone: failed, failed: [], left: [...left, ...again.left] }
    : { passedAlone: [], failed: failedAgain, left: [...left, ...again.left] };
}

/** The files that the command line names, itself or by their folder; all files if it names none. */
function chosen(files: readonly string[]): readonly string[] {
  if (positionals.length === 0) return files;
  const found = positionals.flatMap((name) => {
    const path = relative(directory, resolve(directory, name));
    const matching = files.filter((file) => file === path || file.startsWith(`${path}/`));
    if (matching.length === 0) {
      console.error(
        `Cannot test "${name}": it is neither ${isFast ? 'a fast' : 'a'} test file nor a folder of them`,
      );
      process.exit(2);
    }
    return matching;
  });
  return [...new Set(found)];
}

/** Takes some ten minutes on a new machine. Returns false if a build fails; the build has printed the reason. */
async function buildKube(): Promise<boolean> {
  const started = performance.now();
  const minutes = setInterval(() => {
    const passed = Math.round((performance.now() - started) / 60_000);
    console.log(`Building the Kubernetes API server: ${passed} min so far`);
  }, 60_000);
  try {
    const { exitCode } = await runProgram('sh', ['test/support/kube/kube-assets.sh', ...KUBE_PROGRAMS], {
      cwd: root,
      onError: (text) => process.stderr.write(text),
    });
    return exitCode === 0;
  } finally {
    clearInterval(minutes);
  }
}
