// docs/conformance.md as one text, made from the table of conformance. Pure.

import { conformance, type Row, type Section } from '../test/conformance.ts';

const INTRO = `# Conformance

<!-- Written by scripts/write-conformance-docs.ts from test/conformance.ts: change it there. -->

What Kubernetes asks of a load balancer outside the cluster, rule by rule, and the tests that show what Headgate does.
The rules are those of the API reference, the KEPs that are named, the cloud provider library and kube-proxy; the traps are those that load balancers have fallen into.
A test that is named here and is gone fails the build.
How it all looks to the owner of a Service is in [services](services.md) and [status](status.md).`;

export function conformancePage(): string {
  const missing = conformance.flatMap(({ rows }) => rows.filter(({ notYet }) => notYet !== undefined));
  const list = missing.map(({ field, notYet }) => `- ${nameOf(field)}: ${notYet}`);
  const parts = [INTRO, `## Not there yet\n\n${list.join('\n')}`, ...conformance.map(section)];
  return `${parts.join('\n\n')}\n`;
}

function section({ title, rows }: Section): string {
  return [`## ${title}`, ...rows.map(entry)].join('\n\n');
}

function entry({ field, rule, notYet, shownBy }: Row): string {
  const lines = notYet === undefined ? rule : [...rule, `Not there yet: ${notYet}`];
  const tests = Object.entries(shownBy).flatMap(([file, titles]) =>
    titles.map((title) => testLine(file, title)),
  );
  const paragraphs = [`### ${nameOf(field)}`, lines.join('\n')];
  return (tests.length === 0 ? paragraphs : [...paragraphs, tests.join('\n')]).join('\n\n');
}

function testLine(file: string, title: string): string {
  if (!file.endsWith('/')) return `- ${title} ([${baseOf(file)}](../test/${file}))`;
  return `- ${title.replaceAll('-', ' ')} ([${file}](../test/${file}${title}.txt))`;
}

function baseOf(file: string): string {
  return file.slice(file.lastIndexOf('/') + 1).replace('.test.ts', '');
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
