import test from 'ava';
import {
  Expressions,
  expressionOf,
  isMatch,
  literalStart,
} from '../../../../agent/base/expression/expression.ts';

for (const [pattern, expected] of [
  ['(', 'is not a regular expression of RE2: it has "(" without ")"'],
  ['a)', 'is not a regular expression of RE2: it has ")" without "("'],
  ['[a', 'is not a regular expression of RE2: it has "[" without "]"'],
  ['*a', 'is not a regular expression of RE2: it has "*" at 1 with nothing to repeat'],
  ['a**', 'is not a regular expression of RE2: it repeats a repetition; put it into a group'],
  ['a*+', 'is not a regular expression of RE2: it has a possessive repetition, which RE2 does not have'],
  ['a{3,2}', 'is not a regular expression of RE2: it has "{3,2}", whose numbers are in the wrong order'],
  ['a{1001}', 'is not a regular expression of RE2: it repeats more than 1000 times'],
  [
    '/(?!api)',
    'is not a regular expression of RE2: it has "(?!": look-around and other groups that RE2 does not have',
  ],
  [
    '(a)\\1',
    'is not a regular expression of RE2: it has "\\1", a reference to a group, which RE2 does not have',
  ],
  ['\\pL', 'is not a regular expression of RE2: it has "\\p", which is not allowed'],
  ['\\', 'is not a regular expression of RE2: it ends with a backslash'],
  ['[é]', 'is not a regular expression of RE2: it has "é" in a class: only ASCII is allowed there'],
  ['(?x)a', 'is not a regular expression of RE2: it has the flag "x"; i, m, s and U are allowed'],
  [
    '(?:a|b)*a(?:a|b){30}',
    'needs more than 400 states, or much work; repeat less, or have fewer alternatives',
  ],
  [
    '(?:(?:(?:a{1,9}){1,9}){1,9}){1,9}',
    'needs more than 400 states, or much work; repeat less, or have fewer alternatives',
  ],
  [
    '('.repeat(60) + ')'.repeat(60),
    'is not a regular expression of RE2: it has more than 50 groups in one another',
  ],
  ['a'.repeat(513), 'is longer than 512 characters, the most of a regular expression'],
] as const)
  test(`expressionOf() refuses ${pattern.slice(0, 40)}`, (t) => {
    t.is(expressionOf(pattern, 'whole'), expected);
  });

for (const [pattern, yes, no] of [
  ['(?i)mobile|tablet', ['MOBILE', 'Tablet'], ['mobiles']],
  ['(?:.*; ?)?group=beta(?:;.*)?', ['group=beta', 'a=1; group=beta;b=2'], ['group=betas', 'xgroup=beta']],
  ['[[:alpha:]_]+', ['a_B'], ['a1']],
  ['a{,2}', ['a{,2}'], ['aa']],
  ['[]a]+', [']a'], ['b']],
  ['(?P<v>v[0-9]+)', ['v1'], ['v']],
  ['é+', ['é'], ['e', '']],
  ['', [''], ['a']],
] as const)
  test(`An expression matches as RE2 says: ${pattern}`, (t) => {
    for (const text of yes) t.true(isMatch(pattern, 'whole', text), text);
    for (const text of no) t.false(isMatch(pattern, 'whole', text), text);
  });

test('Expressions ends what one object can ask for', (t) => {
  const expressions = new Expressions();
  const explosive = (at: number): string => `(?:a|b)*a(?:a|b){${10 + at}}c`;
  const all = Array.from({ length: 50 }, (_, at) => expressions.of(explosive(at), 'whole'));
  t.is(all.at(-1), Expressions.TOO_MUCH);
  t.not(new Expressions().of('a', 'whole'), Expressions.TOO_MUCH);
});

for (const [pattern, expected] of [
  ['/api/(?!x)', '/api/'],
  ['^/api/v\\d', '/api/v'],
  ['/ab*(?=x)', '/a'],
  ['/a{2}(?=x)', '/'],
  ['/a|/b(?=x)', ''],
  ['/a(?:x|y)(?=x)', '/a'],
  ['/a[|](?=x)', '/a'],
  ['/a\\|(?=x)', '/a'],
  ['(?=x)', ''],
] as const)
  test(`literalStart() gives what all texts of ${pattern} begin with`, (t) => {
    t.is(literalStart(pattern), expected);
  });
