import test from 'ava';
import fc from 'fast-check';
import { quote } from '../../../agent/base/quote.ts';

test('quote() writes a text as JSON', (t) => {
  t.is(quote('a "b" \\ ä 漢 🙂'), '"a \\"b\\" \\\\ ä 漢 🙂"');
});

test('quote() shortens a text to 60 characters and an ellipsis', (t) => {
  t.is(quote('a'.repeat(60)), `"${'a'.repeat(60)}"`);
  t.is(quote('a'.repeat(61)), `"${'a'.repeat(60)}…"`);
});

test('quote() escapes characters that do not print, and lone surrogates', (t) => {
  t.is(
    quote('\0\n\x7f\x9b\u00a0\u2028\u202e\ufeff'),
    '"\\u0000\\n\\u007f\\u009b\\u00a0\\u2028\\u202e\\ufeff"',
  );
  t.is(quote(`${'a'.repeat(59)}🙂`), `"${'a'.repeat(59)}\\ud83d…"`);
});

test('quote() gives one printable line that JSON can read, for any text', (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const quoted = quote(text);
      t.regex(quoted, /^(?:[^\p{C}\p{Z}]| )*$/u);
      t.is(JSON.parse(quoted), text.length > 60 ? `${text.slice(0, 60)}…` : text);
    }),
  );
});
