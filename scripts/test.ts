// Runs the checks and all tests, and ends with one line: `N passed, N failed, N skipped`.
// test.ts [--directory DIR] [AVA's arguments]: with arguments only the tests, those of DIR where one is given.
// A check that fails counts as a failed test, and so does a Kubernetes API server that cannot be built. Skipped tests make the run fail, unless ALLOW_SKIP=1.

import { spawn } from 'node:child_process';
import { allChecks, root, runChecks } from './check.ts';
import { runAva } from './run-ava.ts';
import { tallyTap, verdictOf } from './tap-tally.ts';

/** All that some test starts: one that had to be built while tests run would take the processor from them. */
const KUBE_PROGRAMS = ['etcd', 'kube-apiserver', 'kube-controller-manager'];

const given = process.argv.slice(2);
const directory = given[0] === '--directory' ? given[1] : undefined;
const avaArguments = directory === undefined ? given : given.slice(2);

// Before the tests, which would wait for it longer than AVA does for them; meanwhile the checks.
const building = given.length === 0 ? buildKube() : Promise.resolve(true);
const failedChecks = given.length === 0 ? runChecks(allChecks()) : [];
const hasKube = await building;
const allowSkip = process.env.ALLOW_SKIP === '1';
// Else each of its tests fails as well, and says why.
if (!hasKube && !allowSkip) failedChecks.push('a Kubernetes API server can be built');

const { output, exitCode } = await runAva(
  directory ?? root,
  avaArguments,
  hasKube ? {} : { KUBE_BUILD: 'no' },
);
const tests = tallyTap(output, exitCode);
const tally = { ...tests, failed: [...failedChecks.map((name) => `Check: ${name}`), ...tests.failed] };

for (const title of tally.skipped) console.log(`SKIPPED: ${title}`);
for (const title of tally.failed) console.log(`FAILED: ${title}`);
const { line, good } = verdictOf(tally, allowSkip);
if (!good && tally.failed.length === 0)
  console.log('Skipped tests count as failed: ALLOW_SKIP=1 allows them');
console.log(line);
process.exitCode = good ? 0 : 1;

/** Takes some ten minutes on a new machine, none later; false where it cannot be done, which is said by then. */
function buildKube(): Promise<boolean> {
  const started = performance.now();
  const minutes = setInterval(() => {
    console.log(
      `Still building a Kubernetes API server, ${Math.round((performance.now() - started) / 60_000)} min`,
    );
  }, 60_000);
  const child = spawn('sh', ['test/support/kube/kube-assets.sh', ...KUBE_PROGRAMS], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return new Promise<boolean>((resolve) => {
    child.on('error', () => resolve(false)).on('close', (code) => resolve(code === 0));
  }).finally(() => clearInterval(minutes));
}
