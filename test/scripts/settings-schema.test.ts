import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import test from 'ava';
import { parseYamlDocuments } from '../../agent/base/yaml.ts';
import { settingsSchema } from '../../scripts/settings-schema.ts';

const isValid = new Ajv({ allErrors: true, strict: false }).compile(JSON.parse(settingsSchema()));

function faults(settings: unknown): readonly string[] {
  return isValid(settings)
    ? []
    : (isValid.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

test("The schema accepts the package's file with all of its settings", (t) => {
  const text = readFileSync('deploy/deb/headgate.yaml', 'utf8').replaceAll(/^#(?! \S)/gm, '');
  const [document] = parseYamlDocuments(text).documents;
  t.deepEqual(Object.keys(document?.value as object), [
    'kubeconfig',
    'manifests',
    'listen',
    'pools',
    'vrrp',
    'pairCredentials',
  ]);
  t.deepEqual(faults(document?.value), []);
});

test('The schema accepts the settings in the documents', (t) => {
  const text = readFileSync('docs/settings.md', 'utf8');
  const [, example = ''] = /```yaml\n(.*?)```/s.exec(text) ?? [];
  t.deepEqual(faults(parseYamlDocuments(example).documents[0]?.value), []);
});

for (const [title, settings] of [
  ['an unknown key', { drainTimeouts: '2m' }],
  ['a word for a switch', { inCluster: 'perhaps' }],
  ['a number that is too large', { threads: 65 }],
  ['a choice that there is not', { members: 'pod' }],
  ['an unknown key of a pool', { pools: [{ name: 'a', blocks: ['192.0.2.0/28'], automatic: true }] }],
  ['a pool without addresses', { pools: [{ name: 'a' }] }],
  ['an unknown key of vrrp', { vrrp: { interfaces: 'eth0' } }],
] as const) {
  test(`The schema refuses ${title}`, (t) => {
    t.true(faults(settings).length > 0);
  });
}
