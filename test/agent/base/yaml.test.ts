import test from 'ava';
import { parseYamlDocuments } from '../../../agent/base/yaml.ts';

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
  t.deepEqual(values('\n  # é'), []);
  t.deepEqual(values('---\n---\na: 1'), [null, { a: 1 }]);
});

test('parseYamlDocuments() reads merge keys, keys that look like numbers, and times as texts', (t) => {
  t.deepEqual(values('x: &x {a: 1}\nz:\n  <<: *x\n  b: 2'), [{ x: { a: 1 }, z: { a: 1, b: 2 } }]);
  t.deepEqual(values('1: x\ntrue: z'), [{ '1': 'x', true: 'z' }]);
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

test('a duplicate key', refused, 'a: 1\nb: 2\na: 3\n', 3, /duplicated mapping key/i);
test('a list without an end', refused, 'a: 1\n---\nb: [1, 2\n', 4, /indentation/);
test('a tab as indent', refused, 'a:\n\t- b', 2, /[Tt]ab/);
test('a tag of its own', refused, 'a: !shell rm', 1, /tag/);
test('binary data', refused, 'a: !!binary aGk=', 1, /tag/);
test('a list as a key', refused, '? [a]\n: b', 1, /cannot be a key/);
test('an alias inside its own anchor', refused, 'a: &a [*a]', 1, /alias/i);
test('aliases of aliases of aliases', refused, billionLaughs(), 1, /[Ee]xcessive alias/);
test('too many nested lists', refused, '['.repeat(20_000), 1, /./);

function billionLaughs(): string {
  const times = (name: string) => `[${Array.from({ length: 20 }, () => name).join(', ')}]`;
  return `a: &a ${times('x')}\nb: &b ${times('*a')}\nc: &c ${times('*b')}\nd: ${times('*c')}\n`;
}

test('parseYamlDocuments() reads __proto__ as an ordinary key', (t) => {
  const [value] = values('__proto__: {polluted: true}');
  t.deepEqual(Object.keys(value as object), ['__proto__']);
  t.is(({} as Record<string, unknown>).polluted, undefined);
});
