import test from 'ava';
import { fileLimit } from '../../../agent/host/file-limit.ts';

test('fileLimit() reads the hard limit of this process', (t) => {
  const limits = (hard: string) => () =>
    `Limit                     Soft Limit           Hard Limit           Units
Max processes             95000                95000                processes
Max open files            1024                 ${hard}               files
`;
  t.is(fileLimit(limits('524288')), 524_288);
  t.is(fileLimit(limits('unlimited')), 1_048_576);
  t.is(
    fileLimit(() => ''),
    1_048_576,
  );
  t.true(fileLimit() > 0);
});
