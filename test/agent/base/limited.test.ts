import test from 'ava';
import { limited } from '../../../agent/base/limited.ts';
import { settled } from '../../support/basics/fake-clock.ts';

test('limited() runs so many pieces of work at a time, in the order of the calls, also after a failure', async (t) => {
  const inTurn = limited(2);
  const begun: number[] = [];
  const ends = [0, 1, 2, 3].map(() => Promise.withResolvers<number>());
  const results = ends.map(({ promise }, at) =>
    inTurn(() => {
      begun.push(at);
      return promise;
    }),
  );
  await settled();
  t.deepEqual(begun, [0, 1]);
  ends[1]?.reject(new Error('It fails'));
  await t.throwsAsync(async () => results[1]);
  await settled();
  t.deepEqual(begun, [0, 1, 2]);
  for (const { resolve } of ends) resolve(7);
  t.deepEqual(await Promise.all([results[0], results[2], results[3]]), [7, 7, 7]);
  t.deepEqual(begun, [0, 1, 2, 3]);
  t.is(await inTurn(async () => 8), 8);
});
