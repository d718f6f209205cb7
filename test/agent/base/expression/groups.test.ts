import test from 'ava';
import fc from 'fast-check';
import { groupProgram, withGroups } from '../../../../agent/base/expression/groups.ts';
import { patterns, texts } from '../../../support/values/expressions.ts';

for (const [pattern, template, text, wanted] of [
  ['/x/?(.*)', '/$1', '/x', '/'],
  ['/x/?(.*)', '/$1', '/x/a/b', '/a/b'],
  ['/x/?(.*)', '/$1', '/xa', '/a'],
  ['/x/?(.*)', '/$1', '/y', undefined],
  ['/(api|web)/v(\\d+)(/.*)?', '/$2/$1$3', '/api/v12/users', '/12/api/users'],
  ['/(api|web)/v(\\d+)(/.*)?', '/$2/$1$3', '/web/v1', '/1/web'],
  ['/a(.*?)/(.*)', '/$1-$2', '/a/b/c', '/-b/c'],
  ['/(.*)/(.*)', '/$2', '/a/b/c', '/c'],
  ['/(?U:(.*))/(.*)', '/$2', '/a/b/c', '/b/c'],
  ['/(ab?)(b?)', '/$1.$2', '/ab', '/ab.'],
  ['/(?:x|(y))z', '/$1', '/xz', '/'],
  ['/((a)|b)+', '/$1$2', '/ab', '/ba'],
  ['/(a*)*$', '/$1', '/', '/'],
  ['/é(.)', '/$1', '/éa', '/a'],
  ['^/x$|^/(y)$', '/$1', '/y', '/y'],
  ['/(?i)SHOP(/.*)', '/new$1', '/shop/a', '/new/a'],
] as const)
  test(`withGroups() makes ${wanted} of ${text} by ${pattern} and ${template}`, (t) => {
    t.is(withGroups(pattern, template, text), wanted);
  });

for (const [pattern, template, why] of [
  ['/x/(.*)', '/$2', 'has no group $2'],
  ['/x/(.*)', '/$0', 'has no group $0'],
  ['/(a{300})', '/$1', 'is too large for its groups; repeat less'],
  [
    '/(?=a)(.*)',
    '/$1',
    'is not a regular expression of RE2: it has "(?=": look-around and other groups that RE2 does not have',
  ],
] as const)
  test(`groupProgram() refuses ${pattern} with ${template}`, (t) => {
    t.is(groupProgram(pattern, template), why);
  });

/** Groups within repetitions differ: JavaScript forgets what they took before. */
const isRepeatedGroup = /\)[*+?{]/;

test('Groups take what they take in JavaScript', (t) => {
  const property = fc.property(patterns, fc.array(texts, { minLength: 1, maxLength: 10 }), (inner, some) => {
    fc.pre(!inner.includes('é') && !isRepeatedGroup.test(inner));
    const pattern = `(${inner})(.*)`;
    fc.pre(typeof groupProgram(pattern, '$1') !== 'string');
    const theirs = new RegExp(`^(?:${pattern})`, 's');
    return some
      .filter((text) => !text.includes('é'))
      .every((text) => withGroups(pattern, '$1', text) === theirs.exec(text)?.[1]);
  });
  t.notThrows(() => fc.assert(property, { numRuns: 1_000 }));
});

test('A program looks at each byte once, whatever the expression is', (t) => {
  const started = process.cpuUsage().user;
  t.is(withGroups('/((((a*)*)*)*)b', '/$1', `/${'a'.repeat(5_000)}`), undefined);
  t.true(process.cpuUsage().user - started < 1_000_000);
});
