// The text of docs/annotations.md, built from the table of annotations. Pure.

import { oneOf } from '../agent/translate/annotations/kinds.ts';
import { ANNOTATIONS, type Annotation, FIELDS, PREFIX } from '../agent/translate/annotations/table.ts';

const INTRO = `# Annotations

<!-- Written by scripts/write-annotation-docs.ts from agent/translate/annotations/table.ts: change it there. -->

Annotations under \`${PREFIX}\` in the \`metadata.annotations\` of a Service configure what its \`spec\` has no field for.
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

An invalid value never stops a Service: the default applies instead, and an Event with the reason \`InvalidAnnotation\` names the value and what is allowed.
Only a port with an invalid value about its TLS is not served, because no default is as strict as what was meant.
An unknown name under \`${PREFIX}\` also causes such an Event, which suggests the nearest name.
Blanks around a value are ignored.
A value has at most 512 characters.

A duration is one whole number with its unit: \`500ms\`, \`5s\`, \`2m\`, \`1h\`, \`7d\`.
A number without a unit is not allowed, because HAProxy and Octavia read it as milliseconds and Kubernetes' probes as seconds.

The setting \`defaults\` changes the defaults of all Services; see [settings](settings.md).
An annotation always has precedence over it.

Annotations of the OpenStack cloud provider, MetalLB, kube-vip and Cilium with the same meaning are accepted as aliases, in their notation and units; they are named below, and [coming from another load balancer](coming-from.md) has an overview.
If a Service has both, the annotation of Headgate applies, then the alias that is named first.
Annotations without an equivalent, such as flavors or floating networks, have no effect, and are reported once (\`AnnotationIgnored\`).
`;

export function annotationPage(): string {
  const entries = FIELDS.map((field) => ANNOTATIONS[field] as unknown as Annotation<never>);
  const names = `All annotations: ${entries.map(({ name }) => `[${name}](#${name})`).join(', ')}.`;
  return `${[INTRO.trimEnd(), names, ...entries.map(section)].join('\n\n')}\n`;
}

function section(entry: Annotation<never>): string {
  const { name, doc, example, kind, aliases = [], monitors, perService } = entry;
  const lines = [...doc];
  if (monitors) lines.push(`It needs \`health-monitor\` to be ${oneOf(monitors)}.`);
  if (perService) lines.push('It is for a single Service: the settings cannot set a default.');
  const list = [
    `- Value: ${kind.words}; default: ${defaultOf(entry)}`,
    `- Example: \`${PREFIX}${name}: ${quoted(example)}\``,
    ...aliases.map((alias) => `- Alias: \`${alias.name}\`, ${alias.notation || alias.words(kind.limits)}`),
  ];
  return `## ${name}\n\n${lines.join('\n')}\n\n${list.join('\n')}`;
}

/** In YAML quotes: a text with double quotes gets single quotes. */
function quoted(text: string): string {
  return text.includes('"') ? `'${text}'` : `"${text}"`;
}

function defaultOf({ defaultWords, kind, default: value }: Annotation<never>): string {
  return defaultWords ?? `\`${kind.format(value)}\``;
}
