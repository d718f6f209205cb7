// Runs Kubernetes' own end-to-end tests of Services and load balancers against Headgate, unmodified, and writes their results
// to docs/conformance/kubernetes.md: test-kubernetes.ts [WORDS]. With words it runs the tests whose names have them, and
// writes nothing. Needs root. Logs: .cache/conformance.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  differenceOf,
  GROUPS,
  LEFT_OUT,
  PROGRAMS,
  ROLES,
  type Role,
  testsOf,
} from '../test/conformance/kubernetes-tests.ts';
import { kubePrograms } from '../test/support/kube/kube.ts';
import { root } from './check.ts';
import { runIsolated } from './isolated-run.ts';
import { kubernetesPage } from './kubernetes-page.ts';
import { resultsOf, type TestResult, testNames } from './kubernetes-results.ts';
import { runProgram } from './run-program.ts';
import { testedVersions } from './tested-versions.ts';
import { writeDocument } from './write-document.ts';

const words = process.argv.slice(2).join(' ');

if (process.getuid?.() !== 0) {
  console.error('Cannot run the tests without root: they need network namespaces and mounts');
  process.exit(1);
}
const programs = await kubePrograms(PROGRAMS);
const fullNames = await allTests();
const unlisted = unlistedTests([...fullNames.keys()]);
for (const name of unlisted)
  console.log(`"${name}" is neither in a chapter nor left out: test/conformance/kubernetes-tests.ts`);

// All at once, because the tests mostly wait.
const results = (await Promise.all(ROLES.map(run))).flat();
const unexpected = results.filter(isUnexpected);
for (const { role, name, outcome, seconds, message } of results)
  console.log(
    `${outcome}: ${name} (${role}, ${seconds} s)${message === '' ? '' : `\n  ${message.split('\n', 1)[0]}`}`,
  );
for (const { role, name, outcome } of unexpected) console.log(`Unexpected: ${name} (${role}) ${outcome}`);
console.log(
  `${results.length} tests, ${unexpected.length} with an unexpected result; logs: .cache/conformance`,
);
if (words === '')
  writeDocument(
    'docs/conformance/kubernetes.md',
    kubernetesPage(results, await testedVersions(programs['kube-apiserver'] ?? ''), new Date()),
  );
process.exitCode = unexpected.length === 0 && unlisted.length === 0 && results.length > 0 ? 0 : 1;

/** A test in which Headgate differs must not pass, and every other one must. */
function isUnexpected({ role, name, outcome }: TestResult): boolean {
  return (outcome === 'passed') === (differenceOf(role, name) !== undefined);
}

/** Name without tags → full name. */
async function allTests(): Promise<ReadonlyMap<string, string>> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-tests-'));
  try {
    const report = join(folder, 'report.json');
    const flags = ['--provider=skeleton', '--ginkgo.dry-run', `--ginkgo.json-report=${report}`];
    await runProgram(programs['e2e.test'] ?? '', flags, { cwd: folder });
    return testNames(readFileSync(report, 'utf8'));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function unlistedTests(all: readonly string[]): readonly string[] {
  const listed = new Set([...ROLES.flatMap(testsOf), ...LEFT_OUT.flatMap(({ tests }) => tests)]);
  return all.filter((name) => GROUPS.some((group) => name.startsWith(`${group} `)) && !listed.has(name));
}

async function run(role: Role): Promise<readonly TestResult[]> {
  const names = testsOf(role).filter((name) => name.includes(words));
  if (names.length === 0) return [];
  console.log(`${names.length} tests of Headgate as ${role.name}`);
  const full = names.map((name) => fullNames.get(name) ?? name);
  const logs = join(root, '.cache/conformance', role.name.replaceAll(' ', '-'));
  await runIsolated('scripts/kubernetes-run.ts', [role.name, ...full], logs);
  return resultsOf(readFileSync(join(logs, 'report.json'), 'utf8'), role.name, names);
}
