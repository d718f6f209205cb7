// The page of invariants names tests that are there.

import { readFileSync } from 'node:fs';
import test from 'ava';

const PAGE = new URL('../docs/design/invariants.md', import.meta.url);

test('Each test that the page of invariants names is in its file', (t) => {
  const named: (readonly [file: string, title: string])[] = [];
  for (const line of readFileSync(PAGE, 'utf8').split('\n')) {
    let file = '';
    for (const [, path, title] of line.matchAll(/\]\((\.\.[^)]+)\)|(?<!\*)\*([^*]+)\*/g)) {
      if (path !== undefined) file = path;
      else if (title !== undefined) named.push([file, title]);
    }
  }
  t.true(named.length >= 15);
  const missing = named.filter(([file, title]) => !readFileSync(new URL(file, PAGE), 'utf8').includes(title));
  t.deepEqual(missing, []);
});
