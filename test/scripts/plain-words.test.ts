import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { addedLines, linesOfDiff, wordFaults } from '../../scripts/plain-words.ts';

const faultsIn = (path: string, ...lines: string[]) =>
  wordFaults(lines.map((text, at) => ({ path, number: at + 1, text })));

for (const [text, fault] of [
  ['Where the list is empty, nothing is written', '"Where the list is empty,": If'],
  ['It is read. Where it has no name, it is left out', '". Where it has no name,": If'],
  ['Served only where the setting is on', '"only where": if'],
  ['It is 0 where there is no member', '"where there is": if'],
  ['Somebody else may write', '"Somebody": the actor: an operator, another process, no client'],
  ['It goes on without it', '"goes on": continue'],
  ['It ends by itself', '"by itself": automatically, alone'],
  ['Begin anew', '"anew": again'],
  ['A map in place of a list', '"in place of": instead of'],
  ['It shall be so', '"shall": must, should'],
] as const)
  test(`wordFaults() finds a fault in "${text}"`, (t) => {
    t.deepEqual(faultsIn('docs/a.md', text), [`docs/a.md:1: ${fault}`]);
    t.deepEqual(faultsIn('agent/a.ts', `  // ${text}`), [`agent/a.ts:1: ${fault}`]);
    t.deepEqual(faultsIn('agent/a.ts', `log.info('${text}');`), [`agent/a.ts:1: ${fault}`]);
  });

test('wordFaults() accepts places, quoted words and names in code', (t) => {
  t.deepEqual(
    faultsIn(
      'agent/a.ts',
      '// Where it listens, once it does.',
      '// The folder where HAProxy has its sockets.',
      '// `goes on` is a word of its own.',
      'const shall = somebody.anew();',
      "const text = 'Where clients connect';",
    ),
    [],
  );
  t.deepEqual(faultsIn('docs/a.md', '`for ever`'), []);
});

test('linesOfDiff() returns only added lines, with their files and numbers', (t) => {
  const diff = [
    'diff --git a/agent/a.ts b/agent/a.ts',
    '--- a/agent/a.ts',
    '+++ b/agent/a.ts',
    '@@ -3 +3,2 @@ export function a() {',
    '-  // Old',
    '+  // New',
    '+  // ++ More',
    '@@ -9,0 +11 @@',
    '+last',
  ].join('\n');
  t.deepEqual(linesOfDiff(diff), [
    { path: 'agent/a.ts', number: 3, text: '  // New' },
    { path: 'agent/a.ts', number: 4, text: '  // ++ More' },
    { path: 'agent/a.ts', number: 11, text: 'last' },
  ]);
});

test('addedLines() returns nothing for a folder without a Git repository', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'words-'));
  t.teardown(() => rm(folder, { recursive: true }));
  t.deepEqual(addedLines(folder), []);
});
