import test from 'ava';
import { xxh64 } from '../../../agent/base/xxh64.ts';

for (const [text, hash] of [
  ['', 'ef46db3751d8e999'],
  ['a', 'd24ec4f1a98c6e5b'],
  ['abc', '44bc2cf5ad770999'],
  ['0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJ', 'b35e125dd4555e6d'],
] as const)
  test(`xxh64() of "${text}" is that of its authors`, (t) => {
    t.is(xxh64(Buffer.from(text)).toString(16), hash);
  });
