import test from 'ava';
import { conceptFaults, conceptsOf, fieldWords, headedFile, MAX_CONCEPTS } from '../../scripts/concepts.ts';

const FIELD = '# Words\nKubernetes: service, route\nPlain English: change\n';
const glossary = (...words: readonly string[]) =>
  `# Glossary\n\n| word | meaning |\n|---|---|\n${words.map((word) => `| ${word} | … |`).join('\n')}\n`;

function file(path: string, head: string, type = '') {
  return headedFile(
    path,
    `// ${head}\n// Why: docs/a.md\n\n${type === '' ? '' : `export interface ${type} {}`}\n`,
  );
}

test('headedFile() reads the comment at the beginning, without the record, and the exported types', (t) => {
  const text =
    '// One,\n// two.\n// Why: docs/a.md\n\nimport a;\nexport class Landing {}\nexport type Move = 1;\n';
  t.deepEqual(headedFile('a.ts', text), { path: 'a.ts', head: 'One, two.', types: ['Landing', 'Move'] });
});

test('A word of the glossary must be used by a head, in any form', (t) => {
  const files = [file('a.ts', 'It drains members.'), file('b.ts', 'Its spare backends.')];
  t.deepEqual(conceptFaults(files, glossary('drain', 'spare backend'), FIELD), []);
  t.deepEqual(conceptFaults(files, glossary('drain', 'claim'), FIELD), [
    '"claim" is in the glossary, and no head of a file uses it',
  ]);
});

test('A type that heads of two other files name is in the glossary, or a word of the field', (t) => {
  const users = [file('b.ts', 'What has landed in the row tables.'), file('c.ts', 'A row table.')];
  const [fault = ''] = conceptFaults([file('a.ts', 'Rows.', 'RowTable'), ...users], glossary(), FIELD);
  t.regex(fault, /^"row table" \(a\.ts\) is used in the heads of b\.ts, c\.ts: explain it/);
  t.deepEqual(conceptFaults([file('a.ts', 'Rows.', 'RowTable'), ...users], glossary('row table'), FIELD), []);
  t.deepEqual(conceptFaults([file('a.ts', 'Rows.', 'RowTable'), ...users.slice(1)], glossary(), FIELD), []);
  const routes = [file('b.ts', 'Routes.'), file('c.ts', 'A route.')];
  t.deepEqual(conceptFaults([file('a.ts', 'One.', 'Route'), ...routes], glossary(), FIELD), []);
});

test('The glossary has a bound', (t) => {
  const words = Array.from({ length: MAX_CONCEPTS + 1 }, (_, at) => `w${'x'.repeat(at)}`);
  const [fault = ''] = conceptFaults(
    words.map((word) => file(`${word}.ts`, word)),
    glossary(...words),
    FIELD,
  );
  t.is(fault, 'The glossary has 96 words, more than 95: choose one of two that mean the same');
  t.deepEqual(conceptsOf(glossary('a', '[b](c.md#b)')), ['a', 'b']);
  t.deepEqual(fieldWords(FIELD), ['service', 'route', 'change']);
});
