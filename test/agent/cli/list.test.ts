import test from 'ava';
import { ageOf } from '../../../agent/cli/list.ts';

for (const [milliseconds, words] of [
  [-5, '0s'],
  [1_999, '1s'],
  [119_999, '119s'],
  [120_000, '2m'],
  [7_199_000, '119m'],
  [7_200_000, '2h'],
  [172_799_000, '47h'],
  [172_800_000, '2d'],
  [400 * 86_400_000, '400d'],
] as const)
  test(`The age of ${milliseconds} ms is ${words}`, (t) => {
    t.is(ageOf(milliseconds), words);
  });
