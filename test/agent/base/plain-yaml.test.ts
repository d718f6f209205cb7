import test from 'ava';
import fc from 'fast-check';
import { parsePlainYaml } from '../../../agent/base/plain-yaml.ts';
import { parseFully } from '../../../agent/base/yaml.ts';

const plain = (text: string) => parsePlainYaml(Buffer.from(text));

const MANIFEST = `---
# what kubectl prints
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  creationTimestamp: null
  labels:
    kubernetes.io/service-name: web
  name: "web-abc"

addressType: IPv4
endpoints:
- addresses:
  - 10.0.0.1
  conditions:
    ready: true
  nodeName: node-1
-   addresses:
    - '10.0.0.2'
    conditions: {}
    zone:
ports:
  - name: http
    port: 8080
    appProtocol: kubernetes.io/h2c
`;

test('parsePlainYaml() takes a manifest as kubectl prints it', (t) => {
  const read = plain(MANIFEST);
  t.is(read?.line, 3);
  t.like(read?.value, {
    metadata: { creationTimestamp: null, name: 'web-abc' },
    endpoints: [
      { addresses: ['10.0.0.1'], conditions: { ready: true } },
      { addresses: ['10.0.0.2'], conditions: {}, zone: null },
    ],
    ports: [{ port: 8080 }],
  });
});

function nested(depth: number): string {
  return Array.from({ length: depth }, (_, at) => `${' '.repeat(at)}a:\n`).join('');
}

test('parsePlainYaml() leaves what is not plain', (t) => {
  for (const text of [
    '',
    'a',
    '- a',
    'a: [1]',
    'a: |\n  b',
    'a: &b c',
    'a: *b',
    'a: !b c',
    'a: b # c',
    'a: b\n  c',
    'a: "b\\n"',
    'a: é',
    'a:\tb',
    'a: 010',
    'a: 1.5',
    'a: 0x1f',
    'a: ~',
    'a: .inf',
    'a: b: c',
    'a: 1\na: 2',
    'a: 1\n b: 2',
    'a: 1\n---\nb: 2',
    '---\n---\na: 1',
    '__proto__: 1',
    '<<: 1',
    '"a": 1',
    "a: 'it''s'",
    'a: 1234567890123456',
    'a: # b',
    '# é\na: 1',
    'constructor: 1',
    `${'k'.repeat(400)}: 1`,
    nested(100),
  ]) {
    t.is(plain(text), undefined, text);
  }
});

test('parsePlainYaml() gives texts that are neither mixed up nor parts of what was read', (t) => {
  for (let at = 0; at < 5_000; at++) {
    const text = `key-${at}: value-${at * 7}\nlong: ${String(at).repeat(20)}x`;
    const { value } = plain(text) ?? {};
    t.deepEqual(value, { [`key-${at}`]: `value-${at * 7}`, long: `${String(at).repeat(20)}x` });
  }
});

const LINES = MANIFEST.split('\n');
const PIECES = [
  '',
  ' ',
  '  ',
  '\n',
  '\n  ',
  '- ',
  '-',
  ':',
  ': ',
  '#',
  ' #',
  '"',
  "'",
  'a',
  '0',
  '1e3',
  '|',
  '&',
  '*',
  '!',
];
const MORE_PIECES = [
  '[',
  ']',
  '{',
  '}',
  ',',
  '---',
  '---\n',
  '...\n',
  '%',
  '? ',
  '@',
  '~',
  '.',
  'x:',
  '<<: ',
  '>',
  '\t',
  '\r',
];
const edits = fc.array(fc.tuple(fc.nat(), fc.nat(2), fc.constantFrom(...PIECES, ...MORE_PIECES)), {
  maxLength: 3,
});
const line = fc.tuple(
  fc.constantFrom('', ' ', '  ', '    '),
  fc.constantFrom('', '- ', '-', '-   ', '# '),
  fc.constantFrom(
    'a:',
    'b: ',
    'c: 1',
    'd: x y',
    'e',
    'f: "q"',
    "g: 'q'",
    'h: []',
    'i: {}',
    '',
    'j: x:y',
    'k: x :y',
    'l: -1',
  ),
);
const moreLines = fc.constantFrom(
  '  a: 1.2.3',
  'a: b:c d',
  '- a:  b',
  '"m": b',
  '- /x',
  'http://x:1',
  'a: x:',
  'q : r',
  's:  t  ',
);

const similar = fc.oneof(
  // Some lines of the manifest, some characters replaced.
  fc.tuple(fc.nat(LINES.length), fc.nat(LINES.length), edits).map(([from, count, changes]) => {
    let text = LINES.slice(from, from + count).join('\n');
    for (const [where, cut, piece] of changes) {
      const at = where % (text.length + 1);
      text = text.slice(0, at) + piece + text.slice(at + cut);
    }
    return text;
  }),
  fc
    .array(
      fc.oneof(
        line.map((parts) => parts.join('')),
        moreLines,
      ),
      { maxLength: 8 },
    )
    .map((all) => all.join('\n')),
);

test('What parsePlainYaml() takes is what the package makes of it, whatever the text', (t) => {
  let count = 0;
  fc.assert(
    fc.property(similar, (text) => {
      const taken = plain(text);
      if (taken === undefined) return;
      count++;
      t.deepEqual(parseFully(text), { documents: [taken], errors: [] }, JSON.stringify(text));
    }),
    { numRuns: 10_000 },
  );
  t.true(count > 500, `only ${count} texts were plain`);
});
