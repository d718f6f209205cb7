// The text of docs/conformance/kubernetes.md: what Kubernetes' own tests say about Headgate. Pure.

import { CHAPTERS, type Chapter, differenceOf, LEFT_OUT } from '../test/conformance/kubernetes-tests.ts';
import type { TestResult } from './kubernetes-results.ts';

const MAX_MESSAGE_LENGTH = 300;

export function kubernetesPage(
  results: readonly TestResult[],
  versions: readonly string[],
  date: Date,
): string {
  const count = (outcome: TestResult['outcome']) =>
    results.filter((result) => result.outcome === outcome).length;
  const parts = [
    `# Kubernetes' own tests

<!-- Written by scripts/test-kubernetes.ts (make conformance) from the results of a run. -->

${count('passed')} of ${results.length} tests pass, ${count('failed')} fail, and ${count('skipped')} skip themselves.
Run on ${date.toISOString().slice(0, 10)}, with ${versions.join(', ')}.

The tests are those of \`k8s.io/kubernetes/test/e2e/network\`, unmodified.
They run in a cluster with the API server, scheduler, controllers and kube-proxy of Kubernetes, and three nodes whose kubelet runs the pods as processes.
Headgate runs on a host outside that cluster, with the rights of \`deploy/\`, an address pool, HAProxy for TCP and the kernel for UDP.

- *Load balancer to pods*: the settings are the defaults; kube-proxy serves cluster IPs and node ports.
- *Load balancer to nodes*: traffic goes to node ports (\`members: nodes\`).
- *Cluster IPs*: Headgate serves cluster IPs and external IPs as well (\`clusterIPs\`, \`externalIPs\`), in the place of kube-proxy, because many rules of Services have a test only there.
- *Gateway mode*: the kernel serves TCP as well, and members see their clients' addresses (\`defaults: {engine: kernel, source-address: client}\`); packets of pods leave their node through Headgate's host. Tests of the client's address pass only there.

\`make conformance\` runs them in some half an hour, as root; \`make conformance WORDS='session affinity'\` runs those with these words in their names.`,
    ...CHAPTERS.map((chapter) => chapterText(chapter, results)),
    `## Not run\n\n${LEFT_OUT.map(({ why, tests }) => `${why}\n\n${tests.map((name) => `- ${plain(name)}`).join('\n')}`).join('\n\n')}`,
  ];
  return `${parts.join('\n\n')}\n`;
}

function chapterText({ title, tests }: Chapter, results: readonly TestResult[]): string {
  const names = Object.values(tests).flat();
  const own = results.filter(({ name }) => names.includes(name));
  const rows = own.map(
    ({ role, name, outcome, seconds }) => `| ${plain(name)} | ${role} | ${outcome} | ${seconds} s |`,
  );
  const notes = own
    .filter(({ outcome }) => outcome !== 'passed')
    .map(({ name, role, outcome, message }) =>
      [`- ${plain(name)} (${role}) ${outcome}: ${plain(shortened(message))}`, differenceOf(role, name)]
        .filter(Boolean)
        .join('\n  '),
    );
  const table = ['| test | Headgate as | result | time |', '|---|---|---|---|', ...rows].join('\n');
  return [`## ${title}`, table, notes.join('\n')].filter((part) => part !== '').join('\n\n');
}

/** The lines of a message as one, without the folders of the machine that ran the test. */
function shortened(message: string): string {
  const line = message
    .replace(/\s+/g, ' ')
    .replace(/\/\S+\/(?=[\w.-]+)/g, '')
    .trim();
  return line.length <= MAX_MESSAGE_LENGTH ? line : `${line.slice(0, MAX_MESSAGE_LENGTH)}…`;
}

/** As text of Markdown, also in a table. */
function plain(text: string): string {
  return text.replace(/[\\`*_[\]<>|]/g, '\\$&');
}
