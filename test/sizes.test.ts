// How much an interface of options may ask for: more than eight fields are several ideas, each with a name of its own. Biome
// counts the lines of functions.

import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const MOST_FIELDS = 8;
const INTERFACE = /^(?:export )?interface (\w+(?:Options|Hooks))\b[^\n]*\{\n(.*?)^\}/gms;
/** One in each line that is indented once, as the formatter writes them. */
const FIELD = /^ {2}(?:readonly )?\w+\??(?=[:(<])/gm;

function tooLarge(text: string): readonly string[] {
  return Array.from(text.matchAll(INTERFACE), ([, name = '', body = '']) => {
    const fields = [...body.matchAll(FIELD)].length;
    return fields > MOST_FIELDS ? [`${name} has ${fields} fields`] : [];
  }).flat();
}

test('An interface of options has at most eight fields of its own', (t) => {
  const files = globSync('{agent,health}/**/*.ts', { cwd: ROOT });
  t.true(files.length > 500);
  const found = files.flatMap((file) =>
    tooLarge(readFileSync(join(ROOT, file), 'utf8')).map((fault) => `${file}: ${fault}`),
  );
  t.deepEqual(found, []);
});

test('tooLarge() counts fields and methods, and nothing within them', (t) => {
  const fields = Array.from({ length: 7 }, (_, at) => `  readonly f${at}?: { readonly of: number };\n`).join(
    '',
  );
  const text = (more: string) => `export interface SomeOptions<T> {\n${fields}${more}}\n`;
  t.deepEqual(tooLarge(text('  /** Of one: two. */\n  on(\n    a: string,\n  ): void;\n')), []);
  t.deepEqual(tooLarge(text('  on(): void;\n  readonly last: T;\n')), ['SomeOptions has 9 fields']);
});
