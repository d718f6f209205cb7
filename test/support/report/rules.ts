// Reads the project's rules for Prometheus, and the metrics that an expression selects.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseYamlDocuments } from '../../../agent/base/yaml.ts';

export const rulesFile = fileURLToPath(
  new URL('../../../deploy/prometheus/headgate.rules.yaml', import.meta.url),
);

export interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

interface RulesFile {
  readonly groups: readonly {
    readonly name: string;
    readonly rules: readonly (AlertRule | RecordingRule)[];
  }[];
}

export interface RecordingRule {
  readonly record: string;
  readonly expr: string;
}

/** In the order of the file. */
export function alertRules(): readonly AlertRule[] {
  return allRules().filter((rule) => 'alert' in rule);
}

export function recordingRules(): readonly RecordingRule[] {
  return allRules().filter((rule) => 'record' in rule);
}

/** The names of the groups, in the order of the file; promtool evaluates them in any other one. */
export function ruleGroups(): readonly string[] {
  return file().groups.map(({ name }) => name);
}

/** Each vector that an expression selects, with its matchers but without its range. */
export function selectorsOf(expr: string): readonly string[] {
  return [
    ...new Set(expr.match(/\b(?:\w+:headgate_\w+:\w+|headgate_\w+|up|scrape_\w+)\b(?:\{[^}]*\})?/g) ?? []),
  ];
}

function allRules(): readonly (AlertRule | RecordingRule)[] {
  return file().groups.flatMap(({ rules }) => rules);
}

function file(): RulesFile {
  const { documents, errors } = parseYamlDocuments(readFileSync(rulesFile, 'utf8'));
  if (errors.length > 0) throw new Error(JSON.stringify(errors));
  return { groups: documents.flatMap(({ value }) => (value as RulesFile).groups) };
}
