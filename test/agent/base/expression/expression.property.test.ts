// Any expression and text, judged by JavaScript's own expressions.

import test from 'ava';
import fc from 'fast-check';
import { expressionOf, isMatch } from '../../../../agent/base/expression/expression.ts';
import { patterns, texts } from '../../../support/values/expressions.ts';

/** Bytes as characters, as HAProxy sees them. */
const latin1 = (text: string): string => Buffer.from(text).toString('latin1');

for (const [anchoring, around] of [
  ['whole', ['^(?:', ')$']],
  ['start', ['^(?:', ')']],
] as const)
  test(`An expression matches what it matches in JavaScript: ${anchoring}`, (t) => {
    const [before, after] = around;
    const property = fc.property(
      patterns,
      fc.array(texts, { minLength: 1, maxLength: 10 }),
      (pattern, some) => {
        // A character is several bytes, and a count after it is for the last one.
        fc.pre(!/é[*+?{]/.test(pattern) && typeof expressionOf(pattern, anchoring) !== 'string');
        const theirs = new RegExp(`${before}${latin1(pattern)}${after}`, 's');
        for (const text of some)
          if (isMatch(pattern, anchoring, text) !== theirs.test(latin1(text))) return false;
        return true;
      },
    );
    t.notThrows(() => fc.assert(property, { numRuns: 2_000 }));
  });
