import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { documentWords, wordsByHand } from '../../scripts/document-words.ts';

test('wordsByHand() counts words, and no signs and no generated text', (t) => {
  t.is(wordsByHand('# A title\n\n- one, `two` – three'), 5);
  t.is(
    wordsByHand(
      'one\n<!-- Written by scripts/write-a.ts. -->\na b c\n<!-- The end of what is written. -->\ntwo',
    ),
    2,
  );
  t.is(wordsByHand('one\n<!-- table: begin -->\n| a | b |\n<!-- table: end -->\ntwo'), 2);
  t.is(
    wordsByHand(
      '# One\n\n<!-- Written by scripts/write-a.ts from b: change it there. -->\n\nall of the rest',
    ),
    1,
  );
});

test('documentWords() finds all documents but records and the list of changes, the longest first', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'headgate-words-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  for (const folder of ['docs/design/decisions', 'node_modules/a', 'room'])
    mkdirSync(join(directory, folder), { recursive: true });
  const texts = {
    'README.md': 'one',
    'room/README.md': 'one two',
    'CHANGELOG.md': 'one',
    'room/a.ts': 'one',
  };
  const others = { 'docs/design/decisions/0001-a.md': 'one', 'node_modules/a/README.md': 'one' };
  for (const [path, text] of Object.entries({ ...texts, ...others }))
    writeFileSync(join(directory, path), text);
  t.deepEqual(documentWords(directory), [
    { path: 'room/README.md', words: 2 },
    { path: 'README.md', words: 1 },
  ]);
});
