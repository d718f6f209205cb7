import test from 'ava';
import { faultOf, faultsOf } from '../../../../agent/haproxy/routes/unservable.ts';
import { entryOf, forwardTo, matchOf, patternOf, ruleOf } from '../../../support/values/routes.ts';

const header = (value: string) => ({ name: 'x', kind: 'exact', value }) as const;
const limits = { allowedCidrs: [], deniedCidrs: [], requestRate: 0, bodyBytes: 0 };
const cidrs = Array.from({ length: 500 }, (_, at) => `10.${at >> 8}.${at & 255}.0/24`);
const replacing = (prefix: string) =>
  entryOf(prefix, forwardTo('a', { rewrite: { hostname: '', path: { kind: 'prefix', value: '/b' } } }));

for (const [what, entry, expected] of [
  ['an ordinary route', entryOf(matchOf('/a', { headers: [header('1')] }), { a: 1, b: 2 }), undefined],
  ['a long path', entryOf(`/${'é'.repeat(1_000)}`, 'a'), 'its path has 6001 bytes: at most 4000 are allowed'],
  [
    'long conditions',
    entryOf(matchOf('/a', { headers: [header('x'.repeat(7_000))] }), 'a'),
    'its conditions have 7003 bytes: at most 6000 are allowed',
  ],
  [
    'long changes of headers',
    entryOf('/a', 'a', {
      responseHeaders: { set: [{ name: 'X', value: 'x'.repeat(7_000) }], add: [], remove: [] },
    }),
    'its "response-headers" has 7003 bytes: at most 6000 are allowed',
  ],
  [
    'many ranges of clients',
    entryOf('/a', 'a', { limits: { ...limits, allowedCidrs: cidrs } }),
    'its "clients" has 7279 bytes: at most 6000 are allowed',
  ],
  ['a replaced prefix of nine elements', replacing('/1/2/3/4/5/6/7/8/9'), undefined],
  [
    'a replaced prefix of ten elements',
    replacing('/1/2/3/4/5/6/7/8/9/10'),
    'it replaces a prefix of 10 elements: at most 9 are allowed',
  ],
] as const)
  test(`faultOf() judges ${what}`, (t) => {
    t.is(faultOf(entry), expected);
  });

test('faultsOf() names the routes', (t) => {
  const rule = ruleOf('a', { name: 'HTTPRoute shop/web#1' });
  const entries = [entryOf('/a', 'a'), { match: matchOf(`/${'x'.repeat(5_000)}`), rule }];
  t.deepEqual(faultsOf({ host: patternOf('h'), entries }), [
    'HAProxy cannot serve HTTPRoute shop/web#1: its path has 5001 bytes: at most 4000 are allowed',
  ]);
});
