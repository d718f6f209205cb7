// A part of the official conformance suite of Gateway API, of every profile, in a cluster of its own. `make conformance` runs
// the whole suite.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ava from 'ava';
import { condensed, type GatewayResult } from '../../scripts/gateway-results.ts';
import { runGatewaySuite } from '../../scripts/gateway-suite.ts';
import { FAST_TESTS, FEATURES, PROFILES, PROGRAMS } from '../conformance/gateway-tests.ts';
import { requires } from '../support/basics/requirements.ts';
import { kubeNeeds } from '../support/kube/kube.ts';

const { programs = [] } = kubeNeeds(...PROGRAMS);
const test = requires(ava, { haproxy: true, root: true, programs: [...programs, 'nft', 'unshare'] });

/** With the build of what is missing. */
const TIMEOUT_MS = 30 * 60_000;
/** The length of each log, if a test fails. */
const LOG_LENGTH = 10_000;
const root = join(import.meta.dirname, '../..');
const logs = join(root, '.cache/conformance/gateway-fast');
/** By name. */
const results = new Map<string, GatewayResult>();

test.before(async (t) => {
  t.timeout(TIMEOUT_MS);
  const agent = join(root, 'bin/headgate');
  const run = await runGatewaySuite({
    tests: FAST_TESTS,
    profiles: PROFILES,
    features: FEATURES,
    agent,
    logs,
  });
  for (const result of run.results) results.set(result.name, result);
  if (run.isWhole && run.results.every(({ outcome }) => outcome === 'passed')) return;
  t.log(
    condensed(run.log).slice(-LOG_LENGTH),
    readFileSync(join(logs, 'headgate.log'), 'utf8').slice(-LOG_LENGTH),
  );
});

for (const name of FAST_TESTS) {
  test(`Gateway API: ${name} passes`, (t) => {
    const result = results.get(name);
    if (result?.outcome !== 'passed') t.log(condensed(result?.output ?? ''));
    t.is(result?.outcome, 'passed', result?.reasons.join('; '));
  });
}
