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

test('judge() gives what the rules name and nothing else, null as nothing, and defaults', (t) => {
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

test('judge() finds every fault, each with its place, its value and what is allowed', (t) => {
  t.is(wordsOf(wanted, undefined), 'missing, must be a mapping');
  t.is(wordsOf(wanted, []), '[] is not a mapping');
  t.is(
    wordsOf(wanted, { size: 1.5, parts: [{ kind: 'a' }, { kind: 'c', on: null }] }),
    'name: missing, must be a text; size: 1.5 is not a whole number from 1 to 9; ' +
      'parts[1].kind: "c" is not one of a, b; and 1 more',
  );
});

test('A rule about the whole is asked only where its parts are right', (t) => {
  const asked: unknown[] = [];
  const rule = listOf(number()).refine((list, refuse) => {
    asked.push(list);
    if (list.length > 1) refuse([1], 'is not wanted');
  });
  t.is(wordsOf(rule, ['1', 2]), '[0]: "1" is not a number');
  t.is(wordsOf(object({ list: rule }), { list: [1, 2] }), 'list[1]: 2 is not wanted');
  t.deepEqual(asked, [[1, 2]]);
});

test('Numbers that JSON does not have are no numbers', (t) => {
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, '1', null])
    t.false(number().judge(value).success);
});

test('A list that needs entries refuses none of them', (t) => {
  t.is(wordsOf(someOf(string(), 'name'), []), '[] is not a list of at least one name');
});

test('A reader gives something else than it was given, or refuses it', (t) => {
  const length = textReader((given) => given.length || undefined, 'is not a long text');
  t.is(length.parse('four'), 4);
  t.is(wordsOf(length, ''), '"" is not a long text');
  t.throws(() => object({ a: length }).parse({ a: 1 }), { message: 'a is not a long text' });
});

test('Names and texts have a rule each, and no name reaches into JavaScript', (t) => {
  const short = { check: (given: string) => given.length < 4, not: 'is not short' };
  const texts = textsByName(short, short);
  t.deepEqual(texts.parse({ a: 'b' }), { a: 'b' });
  t.is(
    wordsOf(texts, JSON.parse('{"__proto__": "x", "a": "long", "b": 1}')),
    '"__proto__" is not short; a: "long" is not short; b: 1 is not short',
  );
});

test('A definition for the API server says what the rules demand', (t) => {
  t.deepEqual(wanted.meta({ description: 'A thing.' }).openApi, {
    type: 'object',
    description: 'A thing.',
    properties: {
      name: { type: 'string' },
      size: {},
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
