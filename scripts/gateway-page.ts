// The text of docs/conformance/gateway.md: what the conformance suite of Gateway API says about Headgate. Pure.

import { DIFFERENCES, FEATURES, NOT_CLAIMED, PROFILES } from '../test/conformance/gateway-tests.ts';
import type { GatewayResult } from './gateway-results.ts';

/** Title → how the names of its tests begin; a test is in the first chapter that matches. */
const CHAPTERS = {
  'Gateway and GatewayClass': /^Gateway/,
  HTTPRoute: /^HTTPRoute/,
  GRPCRoute: /^GRPC/,
  TLSRoute: /^TLSRoute/,
  TCPRoute: /^TCPRoute/,
  UDPRoute: /^UDPRoute/,
  ListenerSet: /^ListenerSet/,
  BackendTLSPolicy: /^BackendTLSPolicy/,
  Other: /^/,
};

export function gatewayPage(
  results: readonly GatewayResult[],
  versions: readonly string[],
  date: Date,
): string {
  const count = (outcome: GatewayResult['outcome']) =>
    results.filter((result) => result.outcome === outcome).length;
  const chapters = Object.keys(CHAPTERS).map((title) =>
    chapterText(
      title,
      results.filter(({ name }) => chapterOf(name) === title),
    ),
  );
  const parts = [
    `# Gateway API's conformance suite

<!-- Written by scripts/test-gateway.ts (make conformance) from the results of a run. -->

${count('passed')} of ${results.length} tests pass, ${count('failed')} fail, and ${count('skipped')} skip themselves.
Run on ${date.toISOString().slice(0, 10)}, with ${versions.join(', ')}.

The tests are those of \`sigs.k8s.io/gateway-api/conformance\`, unmodified, with the definitions of the experimental channel and the profiles ${PROFILES.join(', ')}.
They run in a cluster with the API server, scheduler and controllers of Kubernetes, and a node whose kubelet runs the pods as processes.
Headgate runs on a host outside that cluster, with the rights of \`deploy/\` and an address pool.
A test whose name ends with \`NotSupported\` asks nothing of an implementation that claims the feature.
[The suite's own report](gateway-report.yaml) has the numbers of each profile.

\`make conformance SUITE=gateway\` runs them, as root; \`make conformance TEST=HTTPRouteWeight\` runs one.`,
    ...chapters.filter((text) => text !== ''),
    `## Features\n\nClaimed, also in the status of each GatewayClass: ${FEATURES.join(', ')}.`,
    `## Not claimed\n\n${NOT_CLAIMED.map(({ why, features }) => `${why}\n\n${features.map((name) => `- ${name}`).join('\n')}`).join('\n\n')}`,
  ];
  return `${parts.join('\n\n')}\n`;
}

function chapterOf(name: string): string | undefined {
  return Object.entries(CHAPTERS).find(([, pattern]) => pattern.test(name))?.[0];
}

function chapterText(title: string, results: readonly GatewayResult[]): string {
  if (results.length === 0) return '';
  const rows = results.map(
    ({ name, outcome, seconds }) => `| ${name} | ${outcome} | ${seconds.toFixed(1)} s |`,
  );
  const notes = results
    .filter(({ outcome }) => outcome !== 'passed')
    .map(({ name, outcome, reasons }) =>
      [`- ${name} ${outcome}: ${plain(reasons.join('; '))}`, DIFFERENCES[name]].filter(Boolean).join('\n  '),
    );
  const table = ['| test | result | time |', '|---|---|---|', ...rows].join('\n');
  return [`## ${title}`, table, notes.join('\n')].filter((part) => part !== '').join('\n\n');
}

/** As text of Markdown. */
function plain(text: string): string {
  return text.replaceAll('_', ' ').replace(/[\\`*[\]<>|]/g, '\\$&');
}
