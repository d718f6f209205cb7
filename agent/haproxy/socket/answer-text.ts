// How a text of HAProxy is taken apart, and what is said of one that is not what it should be. Pure.

import { HeadgateError } from '../../base/errors.ts';
import { quote } from '../../base/quote.ts';

export function* linesOf(text: string): Generator<string, undefined, void> {
  for (let from = 0; from < text.length; ) {
    const end = text.indexOf('\n', from);
    yield end === -1 ? text.slice(from) : text.slice(from, end);
    if (end === -1) return;
    from = end + 1;
  }
}

export function integer(what: string, row: string, text: string): number {
  if (!/^-?\d{1,15}$/.test(text)) throw unreadable(what, row, `${quote(text)} is not a number`);
  return Number(text);
}

export function unreadable(what: string, text: string, detail?: string): HeadgateError {
  const why = detail === undefined ? '' : `: ${detail}`;
  return new HeadgateError('RUNTIME_REPLY', `Cannot read HAProxy's ${what}${why}: ${quote(text.trim())}`);
}
