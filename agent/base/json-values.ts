// Parses JSON values that follow one another, as kubectl reads them. Pure: a mistake is a value, which quotes no text,
// because the text may be no manifest but a secret.

import { messageOf } from './errors.ts';
import type { YamlError } from './yaml.ts';

export type JsonValues = { readonly values: readonly unknown[] } | { readonly error: YamlError };

export function parseJsonValues(text: string): JsonValues {
  try {
    return { values: [JSON.parse(text)] };
  } catch {
    return parseEach(text);
  }
}

function parseEach(text: string): JsonValues {
  const values: unknown[] = [];
  let begin = 0;
  for (const end of [...endsOf(text), text.length]) {
    const one = text.slice(begin, end);
    if (end === text.length && one.trim() === '') break;
    try {
      values.push(JSON.parse(one));
    } catch (error) {
      return { error: errorOf(text, begin, one, messageOf(error)) };
    }
    begin = end;
  }
  return { values };
}

/** Where the outermost lists and mappings end. */
function* endsOf(text: string): Generator<number, void, void> {
  let depth = 0;
  let inString = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (inString) {
      if (character === '\\') at++;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if (character === '[' || character === '{') depth++;
    else if ((character === ']' || character === '}') && --depth === 0) yield at + 1;
  }
}

/** V8 names a position in all messages that do not quote the text. */
function errorOf(text: string, begin: number, one: string, message: string): YamlError {
  const [, what, at] = /^([^"]*) in JSON at position (\d+)/.exec(message) ?? [];
  const isCut = message === 'Unexpected end of JSON input';
  const blanks = one.length - one.trimStart().length;
  const offset = begin + (isCut ? one.length : at === undefined ? blanks : Number(at));
  const lines = text.slice(0, offset).split('\n');
  return {
    line: lines.length,
    column: (lines.at(-1) ?? '').length + 1,
    message: isCut ? 'The JSON ends in the middle of a value' : (what ?? 'The text is not valid JSON'),
  };
}
