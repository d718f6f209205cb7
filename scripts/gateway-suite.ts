// Runs the official conformance suite of Gateway API, unmodified, in a cluster with Headgate beside it, and returns its
// results. Needs root. Builds what is missing.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROGRAMS } from '../test/conformance/gateway-tests.ts';
import { kubePrograms } from '../test/support/kube/kube.ts';
import { root } from './check.ts';
import { type GatewayResult, gatewayResults, hasEnded } from './gateway-results.ts';
import { runIsolated } from './isolated-run.ts';
import { headgateVersion } from './tested-versions.ts';

export interface GatewayRunOptions {
  /** Tests to run; all without one. */
  readonly tests: readonly string[];
  readonly profiles: readonly string[];
  /** The extended features that are claimed. */
  readonly features: readonly string[];
  /** The program that runs as Headgate: `AGENT run --config FILE`. */
  readonly agent: string;
  /** The folder for logs and the report. */
  readonly logs: string;
}

export interface GatewayRun {
  readonly results: readonly GatewayResult[];
  /** False if the suite ended before its tests did. */
  readonly isWhole: boolean;
  /** The whole log of the suite. */
  readonly log: string;
}

/** What else the report names: files of the repository. */
const IMPLEMENTATION = [
  '-organization=headgate',
  '-project=headgate',
  '-url=README.md',
  `-version=v${headgateVersion()}`,
  '-contact=SECURITY.md',
];

/** Most waits for conditions are 60 or 180 s by default: fewer leave a failed run short. */
const CONDITION_TIMEOUT_S = 30;
const CONDITIONS = [
  'GatewayMustHaveAddress',
  'GatewayMustHaveCondition',
  'GatewayStatusMustHaveListeners',
  'GatewayListenersMustHaveConditions',
  'GWCMustBeAccepted',
  'HTTPRouteMustNotHaveParents',
  'HTTPRouteMustHaveCondition',
  'LatestObservedGenerationSet',
  'ListenerSetMustHaveCondition',
  'ListenerSetListenersMustHaveConditions',
  'RouteMustHaveParents',
  'TCPRouteMustHaveCondition',
  'TLSRouteMustHaveCondition',
  'UDPRouteMustHaveCondition',
];
const NAMESPACES_TIMEOUT_S = 60;
const SUITE_TIMEOUT_MIN = 60;
/** The most requests within one test; tests run one by one, because one Gateway that fails would fail all others beside it. */
const PARTS_AT_ONCE = 8;

export async function runGatewaySuite(options: GatewayRunOptions): Promise<GatewayRun> {
  const { tests, profiles, features, agent, logs } = options;
  await kubePrograms(PROGRAMS);
  const timeouts = [
    ...CONDITIONS.map((name) => `${name}:${CONDITION_TIMEOUT_S}`),
    `NamespacesMustBeReady:${NAMESPACES_TIMEOUT_S}`,
  ];
  const flags = [
    `-test.run=^TestConformance$${tests.length === 0 ? '' : `/^(${tests.join('|')})$`}`,
    `-test.timeout=${SUITE_TIMEOUT_MIN}m`,
    `-test.parallel=${PARTS_AT_ONCE}`,
    '-disable-parallel-tests',
    // All ends with the namespaces.
    '-cleanup-base-resources=false',
    `-conformance-profiles=${profiles.join(',')}`,
    `-supported-features=${features.join(',')}`,
    `-timeout-config-overrides=${timeouts.join(';')}`,
    ...IMPLEMENTATION,
  ];
  await runIsolated('scripts/gateway-run.ts', [agent, ...flags], logs);
  const path = join(logs, 'suite.log');
  if (!existsSync(path)) throw new Error('The suite did not start');
  const log = readFileSync(path, 'utf8');
  const results = gatewayResults(log);
  const missing = tests.filter((name) => !results.some((result) => result.name === name)).map(notRun);
  return { results: [...results, ...missing], isWhole: hasEnded(log), log };
}

function notRun(name: string): GatewayResult {
  return { name, outcome: 'failed', seconds: 0, reasons: ['It did not run.'], output: '' };
}

/** The logs of a run without others at the same time. */
export const LOGS = join(root, '.cache/conformance/gateway');
