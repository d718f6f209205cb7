import test from 'ava';
import { good, type Line, tableLines } from '../../../agent/cli/text.ts';

const textOf = (line: Line): string =>
  typeof line === 'string'
    ? line
    : line.map((part) => (typeof part === 'string' ? part : part.text)).join('');

test('tableLines() aligns columns by what is printed, and ends no line with spaces', (t) => {
  const rows = [
    ['NAME', good('STATE'), 'AGE'],
    ['a\u001b', good('served'), ''],
    ['longer', good('no'), '5s'],
  ];
  t.deepEqual(tableLines(rows).map(textOf), [
    'NAME     STATE   AGE',
    // The escape is printed as six characters, so that this cell is the longest.
    'a\u001b  served',
    'longer   no      5s',
  ]);
});
