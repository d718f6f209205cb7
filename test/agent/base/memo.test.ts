import test from 'ava';
import { memoByIdentity } from '../../../agent/base/memo.ts';

test('memoByIdentity() computes each result once, also undefined', (t) => {
  const asked: object[] = [];
  const of = memoByIdentity((key: { readonly n: number }) => {
    asked.push(key);
    return key.n > 1 ? key.n : undefined;
  });
  const [one, two] = [{ n: 1 }, { n: 2 }];
  t.deepEqual([of(one), of(two), of(one), of(two), of({ n: 2 })], [undefined, 2, undefined, 2, 2]);
  t.is(asked.length, 3);
});
