import test from 'ava';
import { compactList, intern } from '../../../agent/base/compact.ts';

test('compactList() gives the same items, and one list for all empty or absent lists', (t) => {
  t.deepEqual(compactList(['a', 'b'].filter((text) => text === 'b')), ['b']);
  t.is(compactList<string>([]), compactList<string>(undefined));
  t.deepEqual(compactList(undefined), []);
});

test('The shared empty list of compactList() cannot be changed', (t) => {
  t.throws(() => (compactList<string>([]) as string[]).push('a'), { instanceOf: TypeError });
});

test('intern() gives an equal text after any number of others', (t) => {
  for (let n = 0; n < 20_001; n++) intern(`text ${n}`);
  t.is(intern('zone-a'), 'zone-a');
});
