// Runs the official conformance suite of Gateway API against Headgate, unmodified, and writes its results to
// docs/conformance/gateway.md and gateway-report.yaml: test-gateway.ts [--test NAME,...] [--profiles NAME,...]
// [--features NAME,...|all] [--agent PROGRAM]. With a flag it writes nothing. Needs root. Logs: .cache/conformance/gateway.

import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { DIFFERENCES, FEATURES, NOT_CLAIMED, PROFILES } from '../test/conformance/gateway-tests.ts';
import { kubePrograms } from '../test/support/kube/kube.ts';
import { root } from './check.ts';
import { gatewayPage } from './gateway-page.ts';
import { condensed, type GatewayResult, unlistedFeatures } from './gateway-results.ts';
import { LOGS, runGatewaySuite } from './gateway-suite.ts';
import { testedVersions } from './tested-versions.ts';
import { writeDocument } from './write-document.ts';

const LOG_LINES = 60;

const { values } = parseArgs({
  options: {
    test: { type: 'string', multiple: true, default: [] },
    profiles: { type: 'string' },
    features: { type: 'string' },
    agent: { type: 'string' },
  },
});
const isPartial = Object.values(values).some((value) => value !== undefined && value.length > 0);
const tests = values.test.flatMap(namesIn);
const allFeatures = [...FEATURES, ...NOT_CLAIMED.flatMap((each) => each.features)];

if (process.getuid?.() !== 0) {
  console.error('Cannot run the tests without root: they need network namespaces and mounts');
  process.exit(1);
}
const { results, isWhole, log } = await runGatewaySuite({
  tests,
  profiles: values.profiles === undefined ? PROFILES : namesIn(values.profiles),
  features:
    values.features === 'all'
      ? allFeatures
      : values.features === undefined
        ? FEATURES
        : namesIn(values.features),
  agent: values.agent ?? join(root, 'bin/headgate'),
  logs: LOGS,
});
const failed = results.filter(({ outcome }) => outcome === 'failed');
const unexpected = results.filter(isUnexpected);
const report = readFileSync(join(LOGS, 'report.yaml'), 'utf8');
const unlisted = unlistedFeatures(report, allFeatures);

if (tests.length > 0) for (const { output } of failed) console.log(condensed(output));
if (tests.length > 0 && failed.length > 0)
  console.log(lastLines(readFileSync(join(LOGS, 'headgate.log'), 'utf8')));
if (!isWhole || results.every(({ output }) => output === '')) console.log(lastLines(condensed(log)));
for (const { name, outcome, seconds, reasons } of results)
  console.log([`${outcome}: ${name} (${seconds} s)`, ...reasons].join('\n  '));
for (const { name, outcome } of unexpected) console.log(`Unexpected: ${name} ${outcome}`);
for (const name of unlisted)
  console.log(`"${name}" is neither claimed nor left out: test/conformance/gateway-tests.ts`);
if (!isWhole) console.log('The suite ended before its tests did');
console.log(
  `${results.length} tests, ${failed.length} failed, ${unexpected.length} with an unexpected result; logs: ${LOGS}`,
);
const isComplete = isWhole && results.length > 0;
if (!isPartial && isComplete) {
  const { 'kube-apiserver': apiServer = '' } = await kubePrograms(['kube-apiserver']);
  writeDocument(
    'docs/conformance/gateway.md',
    gatewayPage(results, await testedVersions(apiServer), new Date()),
  );
  copyFileSync(join(LOGS, 'report.yaml'), join(root, 'docs/conformance/gateway-report.yaml'));
}
process.exitCode = isComplete && unexpected.length === 0 && unlisted.length === 0 ? 0 : 1;

/** A test in which Headgate differs must not pass, and every other one must. */
function isUnexpected({ name, outcome }: GatewayResult): boolean {
  return (outcome === 'passed') === Object.hasOwn(DIFFERENCES, name);
}

function namesIn(text: string): readonly string[] {
  return text.split(',').filter((name) => name !== '');
}

function lastLines(text: string): string {
  return text.trimEnd().split('\n').slice(-LOG_LINES).join('\n');
}
