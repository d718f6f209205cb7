import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import test from 'ava';
import fc from 'fast-check';
import { Shares } from '../../../agent/model/shares.ts';

const BOUND = 100;

function sharesOf(needs: Readonly<Record<string, number>>, bound = BOUND): Shares {
  const shares = new Shares(() => bound);
  for (const [owner, need] of Object.entries(needs)) shares.update('a', owner, need);
  shares.settle();
  return shares;
}

test('Owners whose needs are within the bound have no limit', (t) => {
  t.is(sharesOf({ web: 60, api: 40 }).of('a'), Number.POSITIVE_INFINITY);
  t.is(sharesOf({ web: 1_000 }, 0).of('a'), Number.POSITIVE_INFINITY);
  t.is(sharesOf({}).of('b'), Number.POSITIVE_INFINITY);
});

test('An owner that needs too much is limited to what the small ones leave', (t) => {
  const shares = sharesOf({ web: 10, api: 10, greedy: 34_000 });
  t.is(shares.of('a'), 80);
  shares.update('b', 'greedy', 99);
  shares.settle();
  t.is(shares.of('b'), Number.POSITIVE_INFINITY, 'another namespace has its own bound');
});

test('Owners that all need too much have equal shares, at least 1', (t) => {
  t.is(sharesOf({ a: 500, b: 600, c: 700 }).of('a'), 32);
  t.is(sharesOf(Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`s${at}`, 5]))).of('a'), 1);
});

test('settle() returns the owners that may have more or less, once', (t) => {
  const shares = sharesOf({ web: 10, greedy: 500, other: 300 });
  t.deepEqual([...shares.settle()], []);
  shares.update('a', 'other', 0);
  t.deepEqual([...shares.settle()], ['greedy']);
  t.is(shares.of('a'), 88);
  shares.update('a', 'greedy', 20);
  t.deepEqual([...shares.settle()], []);
  t.is(shares.of('a'), Number.POSITIVE_INFINITY);
});

test('Shares depend on the needs only, keep the bound, and leave no more than a quarter of it unused', (t) => {
  const owner = fc.constantFrom('a', 'b', 'c', 'd', 'e');
  const updates = fc.array(fc.tuple(owner, fc.integer({ min: 0, max: 120 })), { maxLength: 30 });
  const property = fc.property(updates, (all) => {
    const shares = new Shares(() => BOUND);
    for (const [of, need] of all) {
      const last = shares.of('a');
      shares.update('a', of, need);
      const affected = shares.settle();
      ok(shares.of('a') !== last || affected.size === 0);
    }
    const needs = Object.fromEntries(all.filter(([of], at) => all.findLastIndex(([o]) => o === of) === at));
    const sorted = Object.fromEntries(Object.entries(needs).sort());
    strictEqual(shares.of('a'), sharesOf(sorted).of('a'));
    const share = shares.of('a');
    const used = Object.values(needs).reduce((sum, need) => sum + Math.min(need, share), 0);
    ok(used <= BOUND);
    if (share !== Number.POSITIVE_INFINITY) ok(used >= BOUND * 0.75);
    deepStrictEqual([...shares.settle()], []);
  });
  t.notThrows(() => fc.assert(property, { numRuns: 500 }));
});
