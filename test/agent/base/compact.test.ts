import test from 'ava';
import { compactList, compactMapping, shared } from '../../../agent/base/compact.ts';

test('compactList() gives the same items, and one list for all that are empty or absent', (t) => {
  t.deepEqual(compactList(['a', 'b'].filter((text) => text === 'b')), ['b']);
  t.is(compactList<string>([]), compactList<string>(undefined));
  t.deepEqual(compactList(undefined), []);
});

test('What is the same for everybody cannot be changed by anybody', (t) => {
  t.throws(() => (compactList<string>([]) as string[]).push('a'), { instanceOf: TypeError });
  t.throws(() => Object.assign(compactMapping({}), { a: 1 }), { instanceOf: TypeError });
});

test('compactMapping() gives the same mapping, and one for all that are empty or absent', (t) => {
  const mapping = { a: 'b' };
  t.is(compactMapping(mapping), mapping);
  t.is(compactMapping<string>({}), compactMapping<string>(undefined));
  t.deepEqual(compactMapping(undefined), {});
});

test('shared() gives an equal text, however many others it has seen', (t) => {
  for (let n = 0; n < 20_001; n++) shared(`text ${n}`);
  t.is(shared('zone-a'), 'zone-a');
});
