import { readFileSync } from 'node:fs';
import test from 'ava';
import { parseYamlDocuments, splitYaml } from '../../../agent/base/yaml.ts';

/** A text, kubectl's result, and Headgate's result if it differs: see main.go beside the texts. */
const cases = readFileSync(new URL('kubectl-yaml/texts.txt', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line) => line.split(' => '));

test('parseYamlDocuments() reads YAML as kubectl does, except for the differences in the table', (t) => {
  t.true(cases.length > 90);
  for (const [text = '', ofKubectl = '', ours = ofKubectl] of cases)
    t.deepEqual(read(text), answerIn(ours), text);
});

function read(text: string): unknown {
  const parts = [...splitYaml(Buffer.from(JSON.parse(text)))].map(({ bytes }) => parseYamlDocuments(bytes));
  if (parts.some(({ errors }) => errors.length > 0)) return 'refused';
  return parts
    .flatMap(({ documents }) => documents.map(({ value }) => value))
    .filter((value) => value !== null);
}

function answerIn(text: string): unknown {
  return text === 'refused' ? text : JSON.parse(text);
}
