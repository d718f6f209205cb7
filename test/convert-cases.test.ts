// Golden tests of `headgate convert`: each file in convert-cases/ has objects of another load balancer, the objects that are
// written, and the notes on what has no match. `UPDATE=1` writes the results.

import ava from 'ava';
import { parseYamlDocuments } from '../agent/base/yaml.ts';
import { convertMetallb } from '../agent/cli/convert-metallb.ts';
import { parseObject } from '../agent/kubernetes/parse-object.ts';
import { isUpdating, readCases, writeCase } from './support/values/case-file.ts';

for (const each of readCases(new URL('convert-cases/', import.meta.url)))
  ava(`convert: ${each.title}`, async (t) => {
    const [input = '', ...expected] = each.parts;
    const { documents, errors } = parseYamlDocuments(input);
    t.deepEqual(errors, []);
    const { text, pools, peers, notes } = convertMetallb(documents.map(({ value }) => value));
    const actual = [text, notes.map((note) => `${note}\n`).join('')];
    if (isUpdating) await writeCase(each, [input, ...actual]);
    else t.deepEqual(actual, expected);
    const written = parseYamlDocuments(text).documents.map(({ value }) => parseObject(value, ''));
    t.deepEqual(
      written.flatMap(({ problems }) => problems),
      [],
    );
    t.is(written.flatMap(({ objects }) => objects).length, pools + peers);
    t.false(actual.join().includes('not-to-be-shown'));
  });
