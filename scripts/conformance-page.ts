// docs/conformance.md as one text, made from the table of conformance and the tests that show its rows. Pure.

import type { Row, Section } from '../test/conformance/row.ts';
import type { Shown } from '../test/support/repository/shown-by.ts';

const INTRO = `# Conformance

<!-- Written by scripts/write-conformance-docs.ts from test/conformance/ and the tests: change it there. -->

What Kubernetes asks of a load balancer outside the cluster, rule by rule, and the tests that show what Headgate does.
The rules are those of the API reference, the KEPs that are named, the cloud provider library and kube-proxy; the traps are those that load balancers have fallen into.
A rule without a test fails the build.
What the owner of a Service sees is in [services](services.md) and [status](status.md).`;

export function conformancePage(sections: readonly Section[], shown: readonly Shown[]): string {
  const missing = sections.flatMap(({ rows }) => rows.filter(({ notYet }) => notYet !== undefined));
  const list = missing.map(({ field, notYet }) => `- ${nameOf(field)}: ${notYet}`);
  const parts = [
    INTRO,
    `## Not there yet\n\n${list.join('\n')}`,
    ...sections.flatMap(({ title, rows }) => [`## ${title}`, ...rows.map((row) => entry(row, shown))]),
  ];
  return `${parts.join('\n\n')}\n`;
}

function entry({ field, rule, notYet }: Row, shown: readonly Shown[]): string {
  const lines = notYet === undefined ? rule : [...rule, `Not there yet: ${notYet}`];
  const tests = shown
    .filter((each) => each.field === field)
    .map(({ title, path }) => `- ${title} ([${baseOf(path)}](../test/${path}))`);
  const paragraphs = [`### ${nameOf(field)}`, lines.join('\n'), tests.join('\n')];
  return paragraphs.filter((paragraph) => paragraph !== '').join('\n\n');
}

/** The name of a test file; the folder of a case, whose title is its name. */
function baseOf(path: string): string {
  const names = path.split('/');
  const name = names.pop() ?? '';
  return name.endsWith('.test.ts') ? name.replace('.test.ts', '') : `${names.join('/')}/`;
}

/** Fields are code, traps are words. */
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
