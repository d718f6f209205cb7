import { execFileSync } from 'node:child_process';
import { gunzipSync } from 'node:zlib';
import test from 'ava';
import { gzipFile, keep } from '../../../health/scrape/compressed-text.ts';

test('gzipFile() makes one gzip file with a correct checksum of a kept text and what follows it', async (t) => {
  const texts = ['a{b="1"} 2\n'.repeat(90), '', 'c 3\n'];
  for (const pieces of [texts, [], ['']]) {
    const kept = await keep(pieces);
    for (const rest of ['# EOF\n', '']) {
      const file = Buffer.concat(await gzipFile(kept, [rest]));
      t.is(gunzipSync(file).toString(), `${pieces.join('')}${rest}`);
    }
  }
});

test('keep() rests between two pieces, and after none', async (t) => {
  let rests = 0;
  const rest = async (): Promise<void> => {
    rests++;
  };
  await keep(['one\n'], rest);
  t.is(rests, 0);
  await keep(['one\n', 'two\n', 'three\n'], rest);
  t.is(rests, 2);
});

test('gzip decompresses a file of gzipFile()', async (t) => {
  const kept = await keep(['one\n', 'two\n']);
  const file = Buffer.concat(await gzipFile(kept, ['three\n']));
  t.is(execFileSync('gzip', ['-dc'], { input: file }).toString(), 'one\ntwo\nthree\n');
});
