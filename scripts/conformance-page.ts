// The text of docs/conformance.md, built from the table of rules and the tests that name them. Pure.

import type { Row, Section } from '../test/conformance/row.ts';
import type { Shown } from '../test/support/repository/shown-by.ts';

const INTRO = `# Conformance

<!-- Written by scripts/write-conformance-docs.ts from test/conformance/ and the tests: change it there. -->

The rules of Kubernetes for an external load balancer, each with the tests that show what Headgate does: they have \`Conformance:\` and the name of the rule above their title.
The rules come from the API reference, the KEPs, the cloud provider library and kube-proxy; the traps are known faults of other load balancers.
A rule without a test fails the build.
[Kubernetes' own tests](conformance/kubernetes.md) and [the conformance suite of Gateway API](conformance/gateway.md) run as well.
[services](services.md) and [status](status.md) describe the same for the owner of a Service.`;

export function conformancePage(sections: readonly Section[], shown: readonly Shown[]): string {
  const missing = sections.flatMap(({ rows }) => rows.filter(({ notYet }) => notYet !== undefined));
  const list = missing.map(({ field, notYet }) => `- ${nameOf(field)}: ${notYet}`);
  const parts = [
    INTRO,
    `## Not implemented\n\n${list.join('\n')}`,
    ...sections.flatMap(({ title, rows }) => [`## ${title}`, ...rows.map((row) => entry(row, shown))]),
  ];
  return `${parts.join('\n\n')}\n`;
}

function entry({ field, rule, notYet }: Row, shown: readonly Shown[]): string {
  const lines = notYet === undefined ? rule : [...rule, `Not implemented: ${notYet}`];
  const paths = new Set(shown.filter((each) => each.field === field).map(({ path }) => path));
  const tests = [...paths].map((path) => `[${baseOf(path)}](../test/${path})`).join(', ');
  const shownBy = tests === '' ? '' : `Shown by ${tests}.`;
  const paragraphs = [`### ${nameOf(field)}`, lines.join('\n'), shownBy];
  return paragraphs.filter((paragraph) => paragraph !== '').join('\n\n');
}

/** The name of a test file, or of a case in its folder. */
function baseOf(path: string): string {
  const name = path.split('/').pop() ?? '';
  return name.replace(/(\.test\.ts|\.txt)$/, '');
}

/** Formats names of fields as code and leaves names of traps as text. */
function nameOf(field: string): string {
  return field
    .split(', ')
    .map((part) =>
      part.replace(
        /^((?:label|labels|annotation|finalizer|condition) )?((?:[a-z]+\.)+\S+|\w+\[\]\S*|[a-z]+[A-Z]\w*|:\d+\S*)$/,
        '$1`$2`',
      ),
    )
    .join(', ');
}
