import test from 'ava';
import fc from 'fast-check';
import { isolate } from '../../../../agent/haproxy/config/isolate.ts';

/** Isolates items that are bad alone, and counts the checks. */
async function isolated(count: number, bad: readonly number[]) {
  let questions = 0;
  const suspects = Array.from({ length: count }, (_, at) => at);
  const guilty = await isolate(suspects, async (some) => {
    questions++;
    return !some.some((each) => bad.includes(each));
  });
  return { guilty, questions };
}

test('isolate() needs one check if all are accepted', async (t) => {
  t.deepEqual(await isolated(1000, []), { guilty: [], questions: 1 });
});

test('isolate() of an empty list checks nothing', async (t) => {
  t.deepEqual(await isolated(0, []), { guilty: [], questions: 0 });
});

test('isolate() finds one of a thousand in few checks', async (t) => {
  for (const bad of [0, 1, 499, 500, 998, 999]) {
    const { guilty, questions } = await isolated(1000, [bad]);
    t.deepEqual(guilty, [bad]);
    t.true(questions <= 22, `${questions} questions`);
  }
});

test('isolate() finds exactly the items at fault', async (t) => {
  const bad = fc.uniqueArray(fc.nat(49), { maxLength: 10 });
  const property = fc.asyncProperty(bad, async (list) => {
    const { guilty } = await isolated(50, list);
    return JSON.stringify(guilty) === JSON.stringify([...list].sort((a, b) => a - b));
  });
  await t.notThrowsAsync(() => fc.assert(property));
});

test('isolate() keeps one of two items that exclude each other', async (t) => {
  const guilty = await isolate(
    ['a', 'b', 'c', 'd'],
    async (some) => !(some.includes('b') && some.includes('d')),
  );
  t.deepEqual(guilty, ['d']);
});

test('The items that isolate() keeps are accepted together', async (t) => {
  const pairs = fc.array(fc.tuple(fc.nat(19), fc.nat(19)), { maxLength: 12 });
  const property = fc.asyncProperty(pairs, async (enemies) => {
    const suspects = Array.from({ length: 20 }, (_, at) => at);
    const isGood = async (some: readonly number[]) =>
      !enemies.some(([a, b]) => some.includes(a) && some.includes(b));
    const guilty = await isolate(suspects, isGood);
    return isGood(suspects.filter((each) => !guilty.includes(each)));
  });
  await t.notThrowsAsync(() => fc.assert(property));
});

test('isolate() rejects if a check rejects', async (t) => {
  await t.throwsAsync(
    isolate([1], async () => {
      throw new Error('HAProxy cannot be started');
    }),
    { message: 'HAProxy cannot be started' },
  );
});
