import test from 'ava';
import { strictJson } from '../../../agent/base/strict-json.ts';

const read = (text: string) => strictJson(Buffer.from(text));

test('strictJson() reads what JSON.parse() reads, and keeps the text of numbers', (t) => {
  t.deepEqual(read(' {"a" : [1.50, -0, 1e+3, true, null, "\\u00e9\\n", {}, []] } '), {
    kind: 'object',
    names: new Map([
      [
        'a',
        {
          kind: 'list',
          items: [
            { kind: 'number', text: '1.50' },
            { kind: 'number', text: '-0' },
            { kind: 'number', text: '1e+3' },
            { kind: 'literal', text: 'true' },
            { kind: 'null' },
            { kind: 'text', text: 'é\n' },
            { kind: 'object', names: new Map() },
            { kind: 'list', items: [] },
          ],
        },
      ],
    ]),
  });
});

for (const text of [
  '',
  '{',
  '[1',
  '[1,]',
  '{"a":1,}',
  '{"a" 1}',
  '01',
  '1.',
  'tru',
  '"a',
  '[1}',
  '{"a":1]',
  '1 1',
  "'a'",
])
  test(`strictJson() refuses ${text}, as JSON.parse() does`, (t) => {
    t.throws(() => JSON.parse(text));
    t.is(read(text), undefined);
  });

for (const text of [
  '{"a":1,"a":2}',
  '{"a":1,"\\u0061":2}',
  '["\\ud800"]',
  '"\x7f"',
  `${'['.repeat(17)}1${']'.repeat(17)}`,
])
  test(`strictJson() refuses ${text}, which others read in several ways`, (t) => {
    t.notThrows(() => JSON.parse(text));
    t.is(read(text), undefined);
  });
