import test from 'ava';
import fc from 'fast-check';
import { parseFully, parsePlainYaml, parseYamlDocuments } from '../../agent/yaml.ts';

const values = (text: string) => parseYamlDocuments(text).documents.map(({ value }) => value);

test('parseYamlDocuments() gives each document with the line it begins at', (t) => {
  t.deepEqual(parseYamlDocuments('# a comment\na: 1\n---\nb: [1, 2]\n'), {
    documents: [
      { value: { a: 1 }, line: 2 },
      { value: { b: [1, 2] }, line: 4 },
    ],
    errors: [],
  });
  t.deepEqual(values(''), []);
  t.deepEqual(values('# only a comment\n'), []);
  t.deepEqual(values('---\n---\na: 1'), [null, { a: 1 }]);
});

test('parseYamlDocuments() reads what Kubernetes reads: merge keys, keys that look like numbers, times as texts', (t) => {
  t.deepEqual(values('x: &x {a: 1}\ny:\n  <<: *x\n  b: 2'), [{ x: { a: 1 }, y: { a: 1, b: 2 } }]);
  t.deepEqual(values('1: x\ntrue: y'), [{ '1': 'x', true: 'y' }]);
  t.deepEqual(values('at: 2026-01-31T12:00:00Z'), [{ at: '2026-01-31T12:00:00Z' }]);
});

const refused = test.macro({
  exec(t, text: string, line: number, message: RegExp) {
    const { errors } = parseYamlDocuments(text);
    t.is(errors[0]?.line, line);
    t.regex(errors[0]?.message ?? '', message);
    t.true(errors.length <= 10);
  },
  title: (title) => `parseYamlDocuments() refuses ${title}`,
});

test('a key that is there twice', refused, 'a: 1\nb: 2\na: 3\n', 3, /unique/);
test('a list without end, where it should end', refused, 'a: 1\n---\nb: [1, 2\n', 4, /sequence/);
test('a tab as indent', refused, 'a:\n\t- b', 2, /[Tt]ab/);
test('a tag of its own', refused, 'a: !shell rm', 1, /tag/);
test('binary data', refused, 'a: !!binary aGk=', 1, /tag/);
test('a list as a key', refused, '? [a]\n: b', 1, /keys must be strings/);
test('an alias inside its own anchor', refused, 'a: &a [*a]', 1, /alias/i);
test('aliases of aliases of aliases', refused, billionLaughs(), 1, /[Ee]xcessive alias/);
test('more nesting than the stack holds', refused, '['.repeat(20_000), 1, /./);

function billionLaughs(): string {
  const times = (name: string) => `[${Array.from({ length: 20 }, () => name).join(', ')}]`;
  return `a: &a ${times('x')}\nb: &b ${times('*a')}\nc: &c ${times('*b')}\nd: ${times('*c')}\n`;
}

test('parseYamlDocuments() keeps a key named __proto__ an ordinary one', (t) => {
  const [value] = values('__proto__: {polluted: true}');
  t.deepEqual(Object.keys(value as object), ['__proto__']);
  t.is(({} as Record<string, unknown>).polluted, undefined);
});

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
  const plain = parsePlainYaml(MANIFEST);
  t.is(plain?.line, 3);
  t.like(plain?.value, {
    metadata: { creationTimestamp: null, name: 'web-abc' },
    endpoints: [
      { addresses: ['10.0.0.1'], conditions: { ready: true } },
      { addresses: ['10.0.0.2'], conditions: {}, zone: null },
    ],
    ports: [{ port: 8080 }],
  });
});

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
  ]) {
    t.is(parsePlainYaml(text), undefined, text);
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
  let plain = 0;
  fc.assert(
    fc.property(similar, (text) => {
      const taken = parsePlainYaml(text);
      if (taken === undefined) return;
      plain++;
      t.deepEqual(parseFully(text), { documents: [taken], errors: [] }, JSON.stringify(text));
    }),
    { numRuns: 10_000 },
  );
  t.true(plain > 500, `only ${plain} texts were plain`);
});
