// Arbitrary regular expressions that mean the same to JavaScript and to RE2, with texts that they are likely to match.

import fc from 'fast-check';

const atoms = fc.constantFrom(
  ...[
    'a',
    'b',
    'c',
    '/',
    '-',
    '1',
    ' ',
    '\\.',
    '.',
    '\\d',
    '\\w',
    '\\W',
    '\\s',
    '\\S',
    '[ab]',
    '[^a]',
    '[a-c1-3]',
  ],
  ...['[\\w-]', '[^\\d/]', '\\/', '\\x61', '[.*]', 'é'],
);
const anchors = fc.constantFrom('^', '$', '\\b', '\\B');
const counts = fc.constantFrom('', '', '', '*', '+', '?', '*?', '{2}', '{1,3}', '{2,}', '{0,1}');

export const patterns: fc.Arbitrary<string> = fc.letrec<{ pattern: string; group: string; atom: string }>(
  (tie) => ({
    pattern: fc
      .array(fc.oneof({ weight: 8, arbitrary: tie('atom') }, { weight: 1, arbitrary: anchors }), {
        maxLength: 5,
      })
      .map((parts) => parts.join('')),
    group: fc
      .tuple(fc.constantFrom('(?:', '(', '(?<x>'), fc.array(tie('pattern'), { minLength: 1, maxLength: 3 }))
      // A name only once.
      .map(([open, parts]) => `${open === '(?<x>' ? '(' : open}${parts.join('|')})`),
    atom: fc
      .tuple(fc.oneof({ weight: 4, arbitrary: atoms }, { weight: 1, arbitrary: tie('group') }), counts)
      .map(([atom, count]) => `${atom}${count}`),
  }),
).pattern;

export const texts: fc.Arbitrary<string> = fc.oneof(
  fc.array(fc.constantFrom(...'aaabbc1/-. '), { maxLength: 12 }).map((some) => some.join('')),
  fc.constantFrom('', 'a', 'ab', 'abc', 'é', 'a b', 'a-1', '//', 'aé'),
);
