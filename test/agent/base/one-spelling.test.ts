import test from 'ava';
import fc from 'fast-check';
import { isMatch } from '../../../agent/base/expression/expression.ts';
import { expressionText, oneSpelling, pathPattern } from '../../../agent/base/one-spelling.ts';

for (const [path, spelled] of [
  ['/%61%40%2b', '/a@+'],
  ['/a@+', '/a@+'],
  ['/a|b"[]', '/a%7Cb%22%5B%5D'],
  ['/%7c%5b', '/%7C%5B'],
  ['/é', '/%C3%A9'],
  ['/%c3%a9', '/%C3%A9'],
  ['/100%', '/100%25'],
  ['/%zz%4', '/%25zz%254'],
  ['/%2561', '/%2561'],
  ['/a%2fb;c%3bd%3f%23%5c', '/a%2Fb;c%3Bd%3F%23%5C'],
] as const)
  test(`oneSpelling() of ${path} is ${spelled}`, (t) => t.is(oneSpelling(path), spelled));

test('oneSpelling() is a fixed point, and the same however many characters are encoded', (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.infiniteStream(fc.boolean()), (text, isEncoded) => {
      const path = `/${text.replace(/[/;%?#\\]/g, '')}`;
      const encoded = Array.from(Buffer.from(path), (byte) =>
        isEncoded.next().value && byte !== 0x2f ? `%${byte.toString(16).padStart(2, '0')}` : byte,
      );
      const one = oneSpelling(path);
      t.is(oneSpelling(one), one);
      const mixed = encoded.map((each) => (typeof each === 'string' ? each : String.fromCharCode(each)));
      // Bytes that are not ASCII are no characters here.
      if (!/[^\0-\x7f]/.test(path)) t.is(oneSpelling(mixed.join('')), one);
    }),
  );
});

for (const [pattern, matching] of [
  ['/a%40b', '/a@b'],
  ['/a@b', '/a%40b'],
  ['/a\\|b', '/a%7cb'],
  ['/a\\|b', '/a|b'],
  ['/a%7Cb', '/a|b'],
  ['/a%2Bb', '/a+b'],
  ['/é+/x', '/%c3%a9é/x'],
  ['/caf%c3%a9', '/café'],
  ['/[a-z%]+/x', '/a/x'],
  ['/a b', '/a%20b'],
  ['/[[:alpha:]|]+x', '/a|x'],
] as const)
  test(`The expression ${pattern} of an author matches ${matching}`, (t) =>
    t.true(isMatch(pathPattern(pattern), 'start', expressionText(oneSpelling(matching)))));

test('pathPattern() leaves a class that is not ASCII to be refused', (t) =>
  t.is(pathPattern('/[é]'), '/[é]'));
