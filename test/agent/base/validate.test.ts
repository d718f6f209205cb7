import test from 'ava';
import {
  boolean,
  faultsOf,
  listOf,
  number,
  object,
  oneOf,
  type Rule,
  someOf,
  string,
  textReader,
  textRule,
  textsByName,
  wholeNumber,
} from '../../../agent/base/validate.ts';

const wanted = object({
  name: string(),
  size: wholeNumber(1, 9).nullish(),
  parts: listOf(object({ kind: oneOf('a', 'b'), on: boolean().default(true) })),
});

function wordsOf(rule: Rule<unknown>, value: unknown): string {
  const judgement = rule.judge(value);
  return judgement.success ? '' : faultsOf(judgement.faults, value);
}

test('judge() gives only fields of the rules, undefined for null, and defaults', (t) => {
  const given = {
    name: 'x',
    size: null,
    parts: [
      { kind: 'a', other: 1 },
      { kind: 'b', on: false },
    ],
    more: 1,
  };
  t.deepEqual(wanted.judge(given), {
    success: true,
    data: {
      name: 'x',
      size: undefined,
      parts: [
        { kind: 'a', on: true },
        { kind: 'b', on: false },
      ],
    },
  });
});

test('judge() gives every fault with its path, its value and what is allowed', (t) => {
  t.is(wordsOf(wanted, undefined), 'missing, must be a mapping');
  t.is(wordsOf(wanted, []), '[] is not a mapping');
  t.is(
    wordsOf(wanted, { size: 1.5, parts: [{ kind: 'a' }, { kind: 'c', on: null }] }),
    'name: missing, must be a text; size: 1.5 is not a whole number from 1 to 9; ' +
      'parts[1].kind: "c" is not one of a, b; and 1 more',
  );
});

test('refine() checks a value only if its parts are valid', (t) => {
  const asked: unknown[] = [];
  const rule = listOf(number()).refine((list, refuse) => {
    asked.push(list);
    if (list.length > 1) refuse([1], 'is not wanted');
  });
  t.is(wordsOf(rule, ['1', 2]), '[0]: "1" is not a number');
  t.is(wordsOf(object({ list: rule }), { list: [1, 2] }), 'list[1]: 2 is not wanted');
  t.deepEqual(asked, [[1, 2]]);
});

test('number() refuses numbers that JSON does not have', (t) => {
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, '1', null])
    t.false(number().judge(value).success);
});

test('someOf() refuses an empty list', (t) => {
  t.is(wordsOf(someOf(string(), 'name'), []), '[] is not a list of at least one name');
});

test('or() gives its value for undefined and null, and checks others', (t) => {
  const short = object({ a: textRule((given) => given.length < 4, 'is not short').or('none') });
  for (const given of [{}, { a: undefined }, { a: null }]) t.deepEqual(short.parse(given), { a: 'none' });
  t.deepEqual(short.parse({ a: '' }), { a: '' });
  t.is(wordsOf(short, { a: 'long' }), 'a: "long" is not short');
  t.false('required' in short.openApi);
});

test('textReader() converts a text or refuses it', (t) => {
  const length = textReader((given) => given.length || undefined, 'is not a long text');
  t.is(length.parse('four'), 4);
  t.is(wordsOf(length, ''), '"" is not a long text');
  t.throws(() => object({ a: length }).parse({ a: 1 }), { message: 'a is not a long text' });
});

test('textsByName() checks names and texts, and __proto__ is an ordinary name', (t) => {
  const short = { check: (given: string) => given.length < 4, not: 'is not short' };
  const texts = textsByName(short, short);
  t.deepEqual(texts.parse({ a: 'b' }), { a: 'b' });
  t.is(
    wordsOf(texts, JSON.parse('{"__proto__": "x", "a": "long", "b": 1}')),
    '"__proto__" is not short; a: "long" is not short; b: 1 is not short',
  );
});

test('The OpenAPI schema matches the rules', (t) => {
  t.deepEqual(wanted.meta({ description: 'A thing.' }).openApi, {
    type: 'object',
    description: 'A thing.',
    properties: {
      name: { type: 'string' },
      size: { type: 'integer', minimum: 1, maximum: 9 },
      parts: {
        type: 'array',
        items: {
          type: 'object',
          properties: { kind: { type: 'string', enum: ['a', 'b'] }, on: { type: 'boolean' } },
          required: ['kind'],
        },
      },
    },
    required: ['name', 'parts'],
  });
});
