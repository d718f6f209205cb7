// docs/annotations.md as one text, made from the table of annotations. Pure.

import { oneOf } from '../agent/translate/annotations/kinds.ts';
import { ANNOTATIONS, type Annotation, FIELDS, PREFIX } from '../agent/translate/annotations/table.ts';

const INTRO = `# Annotations

<!-- Written by scripts/write-annotation-docs.ts from agent/translate/annotations/table.ts: change it there. -->

What a Service asks of the load balancer beyond its \`spec\` stands in its \`metadata.annotations\`, under \`${PREFIX}\`.
Every value is a string, so numbers and \`true\` need quotes in YAML.

\`\`\`yaml
apiVersion: v1
kind: Service
metadata:
  name: web
  annotations:
    headgate.io/algorithm: least-connections
    headgate.io/health-monitor: http
    headgate.io/health-monitor-path: /healthz
    headgate.io/timeout-connect: 500ms
\`\`\`

A value that is not allowed never stops a Service: the default holds in its place, everything else goes on, and an Event with the reason \`InvalidAnnotation\` says which value is wrong and what is allowed.
The same happens to a name under \`${PREFIX}\` that does not exist, with the name that was probably meant.
Blanks around a value do not count, and no value is longer than 512 characters.

A duration is one whole number with its unit: \`500ms\`, \`5s\`, \`2m\`, \`1h\`, \`7d\`.
A number without a unit is refused, because HAProxy and Octavia would read it as milliseconds and Kubernetes' probes as seconds.

The setting \`defaults\` gives another default to all Services; see [settings](settings.md).
An annotation always has precedence over it.

Annotations of the OpenStack cloud provider that mean the same are read too, in that provider's notation and units; they are named below as aliases.
Where a Service has both, ours holds.
Those that have no equal here, such as flavors, floating networks or TLS containers, are ignored.
`;

export function annotationPage(): string {
  const entries = FIELDS.map((field) => ANNOTATIONS[field] as unknown as Annotation<never>);
  const rows = entries.map(
    (entry) => `| [${entry.name}](#${entry.name}) | ${entry.kind.type} | ${defaultOf(entry)} |`,
  );
  const table = ['| name | value | default |', '|---|---|---|', ...rows].join('\n');
  return `${[INTRO.trimEnd(), table, ...entries.map(section)].join('\n\n')}\n`;
}

function section(entry: Annotation<never>): string {
  const { name, doc, example, kind, aliases, needs, perService } = entry;
  const lines = [...doc];
  if (needs) lines.push(`It needs \`${ANNOTATIONS[needs.field].name}\` to be ${oneOf(needs.values)}.`);
  if (perService) lines.push('It is for a single Service: the settings can give no default.');
  const list = [
    `- Value: ${kind.words}`,
    `- Default: ${defaultOf(entry)}`,
    `- Example: \`${PREFIX}${name}: ${quoted(example)}\``,
    ...aliases.map((alias) => `- Alias: \`${alias.name}\`, ${alias.notation || alias.words(kind.limits)}`),
  ];
  return `## ${name}\n\n${lines.join('\n')}\n\n${list.join('\n')}`;
}

/** As YAML: a text with quotes of the one kind stands between those of the other. */
function quoted(text: string): string {
  return text.includes('"') ? `'${text}'` : `"${text}"`;
}

function defaultOf({ defaultWords, kind, default: value }: Annotation<never>): string {
  return defaultWords ?? `\`${kind.format(value)}\``;
}
