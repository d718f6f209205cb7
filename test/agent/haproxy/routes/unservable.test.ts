import test from 'ava';
import { faultOf, faultsOf, servable } from '../../../../agent/haproxy/routes/unservable.ts';
import { entryOf, forwardTo, matchOf, patternOf, ruleOf } from '../../../support/values/routes.ts';

const header = (value: string) => ({ name: 'x', kind: 'exact', value }) as const;
const byHeader = (value: string) => matchOf('/a', { headers: [{ name: 'x', kind: 'regex', value }] });
const limits = { allowedCidrs: [], deniedCidrs: [], requestRate: 0, bodyBytes: 0 };
const cidrs = Array.from({ length: 500 }, (_, at) => `10.${at >> 8}.${at & 255}.0/24`);
const replacing = (prefix: string) =>
  entryOf(prefix, forwardTo('a', { rewrite: { hostname: '', path: { kind: 'prefix', value: '/b' } } }));

for (const [what, entry, expected] of [
  ['an ordinary route', entryOf(matchOf('/a', { headers: [header('1')] }), { a: 1, b: 2 }), undefined],
  [
    'the method CONNECT',
    entryOf(matchOf('/', { method: 'CONNECT' }), 'a'),
    'it matches CONNECT, whose tunnel would lead past all rules',
  ],
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

for (const [what, match, path, header] of [
  ['its header', byHeader('(?=x)'), { kind: 'prefix', value: '/a' }, '.*'],
  ['its path', matchOf('~/a/(?=x)'), { kind: 'regex', value: '/a/' }, undefined],
] as const)
  test(`servable() answers 500 to all that a route could mean whose expression of ${what} cannot be matched`, (t) => {
    const { match: closed, rule } = servable(entryOf(match, 'a'));
    t.deepEqual(closed.path, path);
    t.is(closed.headers[0]?.value, header);
    t.deepEqual(rule.action, { kind: 'answer', status: 500 });
  });

test('faultsOf() names a hostname with more expressions than a request can try', (t) => {
  const entries = Array.from({ length: 501 }, (_, at) => entryOf(`~/a${at}`, 'a'));
  const host = patternOf('a.example.org');
  t.deepEqual(faultsOf({ host, entries: entries.slice(1) }), []);
  t.deepEqual(faultsOf({ host, entries }), [
    'HAProxy cannot serve all requests to a.example.org: its routes, such as HTTPRoute default/route#0, have 501 regular expressions, and a request that needs more than 100000 steps is answered with 500; at most 500 are advisable',
  ]);
});
