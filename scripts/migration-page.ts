// The text of docs/conformance/ingress-nginx.md: the tests of the move from ingress-nginx, and what each would find. Pure.

import {
  FEATURES,
  OUTCOMES,
  type Outcome,
  RUN,
  type Scenario,
  SUITE,
} from '../test/conformance/ingress-nginx-tests.ts';

const KINDS = Object.keys(OUTCOMES) as readonly Outcome[];
const FAILED: ReadonlySet<string> = new Set(RUN.failed.split(' '));
/** As the columns and lists are called. */
const TITLES: Readonly<Record<Outcome, string>> = {
  same: 'same',
  differs: 'differs',
  ignored: 'no effect',
  closed: '403',
};

export function migrationPage(): string {
  const all = Object.values(FEATURES).flat();
  const passed = SUITE.tests - FAILED.size;
  const url = `https://github.com/${SUITE.repository}/tree/${SUITE.commit}/e2e`;
  return `# What people rely on in ingress-nginx

<!-- Written by scripts/write-migration-docs.ts from test/conformance/ingress-nginx-tests.ts: change it there, then \`make docs\`. -->

Traefik has [${SUITE.tests} tests](${url}) that compare its own controller with ingress-nginx: a list of what people rely on.
They were run on ${RUN.date} with Headgate (HAProxy ${RUN.haproxy}) in the place of Traefik, beside ingress-nginx ${RUN.controller} (nginx ${RUN.nginx}): ${passed} of ${SUITE.tests} pass, ✗ marks the others.
All but those of snippets were run with HAProxy 3.4.7, too; four ended otherwise, by chance.
A test passes whatever it does not ask about: the lists say what the answer is.
Most snippets could not be loaded into this nginx, whose module for headers is older: there Headgate's answer is compared with what the test wants.
[A test of ours](../../test/conformance/ingress-nginx-suite.test.ts) reads the annotations of each as the agent does, so that the lists follow the code.

${KINDS.map((kind) => `- **${TITLES[kind]}**: ${OUTCOMES[kind]}`).join('\n')}

How to move is in [Coming from ingress-nginx](../ingress-annotations.md), with all annotations.

| feature | tests | pass | ${KINDS.map((kind) => TITLES[kind]).join(' | ')} |
|---|---|---|${KINDS.map(() => '---|').join('')}
${Object.entries(FEATURES)
  .map(([feature, scenarios]) => `| [${feature}](#${anchor(feature)}) ${counts(scenarios)}`)
  .join('\n')}
| **all** ${counts(all)}

${Object.entries(FEATURES)
  .map(([feature, scenarios]) => `## ${feature}\n\n${lines(scenarios).join('\n')}`)
  .join('\n\n')}
`;
}

function testsOf(scenarios: readonly Scenario[], outcome: Outcome): readonly string[] {
  return scenarios.filter((each) => each.outcome === outcome).flatMap(({ tests }) => tests.split(' '));
}

function counts(scenarios: readonly Scenario[]): string {
  const numbers = KINDS.map((kind) => testsOf(scenarios, kind).length);
  const sum = numbers.reduce((total, each) => total + each, 0);
  const passed = scenarios.flatMap(({ tests }) => tests.split(' ')).filter((name) => !FAILED.has(name));
  return `| ${[sum, passed.length || '', ...numbers.map((each) => each || '')].join(' | ')} |`;
}

/** One for each outcome and reason. */
function lines(scenarios: readonly Scenario[]): readonly string[] {
  const groups = Map.groupBy(
    scenarios,
    ({ outcome, why = '' }) => `- **${TITLES[outcome]}**${why && `, ${why}`}`,
  );
  return Array.from(groups, ([start, same]) => {
    const names = same
      .flatMap(({ tests }) => tests.split(' '))
      .map((name) => `\`${name}\`${FAILED.has(name) ? ' ✗' : ''}`);
    return `${start}: ${names.join(', ')}`;
  });
}

/** As GitHub makes it of a heading. */
function anchor(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^a-z0-9 -]/g, '')
    .replaceAll(' ', '-');
}
