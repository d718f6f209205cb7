// Parses the YAML of a test with the agent's own parser.

import { parseYamlDocuments } from '../../../agent/base/yaml.ts';
import type { KubernetesObject } from '../../../agent/kubernetes/objects.ts';
import { parseObject } from '../../../agent/kubernetes/parse-object.ts';
import type { TranslateSettings } from '../../../agent/translate/translate-settings.ts';

/** Errors: the agent would not accept a manifest. */
export function objectsOf(yaml: string): readonly KubernetesObject[] {
  const { documents, errors } = parseYamlDocuments(yaml);
  if (errors.length > 0) throw new Error(errors.map(({ line, message }) => `${line}: ${message}`).join('\n'));
  return documents.flatMap(({ value }) => {
    const { objects, problems } = parseObject(value, '');
    if (problems.length > 0) throw new Error(problems.map(({ message }) => message).join('\n'));
    return objects;
  });
}

/** Reads settings from a first line such as `# settings: {"zone": "a"}`. */
export function settingsOf(yaml: string): Partial<TranslateSettings> {
  const json = /^# settings: (.*)/m.exec(yaml)?.[1];
  return json === undefined ? {} : (JSON.parse(json) as Partial<TranslateSettings>);
}
