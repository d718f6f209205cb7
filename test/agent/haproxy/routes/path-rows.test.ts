import test from 'ava';
import { pathRows } from '../../../../agent/haproxy/routes/path-rows.ts';
import type { RouteEntry, RouteMatch } from '../../../../agent/model/routes.ts';
import { entryOf, matchOf, patternOf } from '../../../support/values/routes.ts';

const post: Partial<RouteMatch> = { method: 'POST' };

/** `exact PATH` and so on with where it leads: pools by their Services, lists as `[A POST, B]`. */
function waysOf(entries: readonly RouteEntry[]): readonly string[] {
  const rows = pathRows({ host: patternOf('h'), entries }, 'T');
  const expressions = rows.filter(({ map }) => map === 'expressions').map(({ key }) => key);
  const short = (target: string): string => target.split(':')[2] ?? target;
  const listOf = (id: string): string => {
    const text = rows.find(({ map, key }) => map === 'lists' && key === id)?.value ?? '';
    const candidates = text.split('|').map((each) => {
      const [target = '', ...conditions] = each.split('&');
      const ways = [target.startsWith('?') ? listOf(target) : short(target), ...conditions];
      return ways.join(' ').replace(/x:[0-9a-f]{24}/g, (id) => String(expressions.indexOf(id)));
    });
    return `[${candidates.join(', ')}]`;
  };
  return rows
    .filter(({ map }) => map === 'exact' || map === 'prefix')
    .map(({ map, key, value }) => `${map} ${key} ${value.startsWith('?') ? listOf(value) : short(value)}`)
    .sort();
}

for (const [what, entries, expected] of [
  ['nothing', [], []],
  ['an exact path and a prefix', [entryOf('=/a', 'a'), entryOf('/a', 'b')], ['exact T/a a', 'prefix T/a/ b']],
  ['the root', [entryOf('/', 'a')], ['prefix T/ a']],
  [
    'a second route of a path, which is never taken',
    [entryOf('/a', 'a'), entryOf('/a', 'b')],
    ['prefix T/a/ a'],
  ],
  [
    'a condition before a route without one',
    [entryOf(matchOf('/a', post), 'a'), entryOf('/a', 'b')],
    ['prefix T/a/ [a mPOST, b]'],
  ],
  [
    'a condition that may fail, with shorter prefixes behind it',
    [entryOf(matchOf('/a/b', post), 'a'), entryOf(matchOf('/a', post), 'b'), entryOf('/', 'c')],
    ['prefix T/ c', 'prefix T/a/ [b mPOST, c]', 'prefix T/a/b/ [a mPOST, [b mPOST, c]]'],
  ],
  [
    'a condition on an exact path, with its prefixes behind it',
    [entryOf(matchOf('=/a/b', post), 'a'), entryOf('/a/bc', 'x'), entryOf('/a', 'b')],
    ['exact T/a/b [a mPOST, b]', 'prefix T/a/ b', 'prefix T/a/bc/ x'],
  ],
  [
    'a regular expression, which any path may match',
    [entryOf('=/a', 'a'), entryOf('~/r.*', 'r'), entryOf('/b', 'b')],
    ['exact T/a a', 'prefix T/ [r P0]', 'prefix T/b/ [[r P0], b]'],
  ],
  [
    'a regular expression behind a longer prefix, and before a shorter one',
    [entryOf('/api/admin', 'a'), entryOf('~/api/.*', 'r'), entryOf('/api', 'b'), entryOf('=/api/x/y', 'e')],
    ['exact T/api/x/y e', 'prefix T/ [r P0]', 'prefix T/api/ [[r P0], b]', 'prefix T/api/admin/ a'],
  ],
  [
    'what may fail, then the expressions between it and a wider prefix, then that',
    [entryOf(matchOf('/api/admin', post), 'a'), entryOf('~/api/.*', 'r'), entryOf('/api', 'b')],
    ['prefix T/ [r P0]', 'prefix T/api/ [[r P0], b]', 'prefix T/api/admin/ [a mPOST, [[r P0], b]]'],
  ],
  [
    'expressions of several lengths, each list with that of fewer',
    [entryOf('~/a/b/c', 'x'), entryOf('/a/b', 'p'), entryOf('~/a', 'y'), entryOf('/', 'z')],
    ['prefix T/ [[[x P0], [y P1]], z]', 'prefix T/a/b/ [[x P0], p]'],
  ],
  ['a trailing slash', [entryOf(matchOf('=/a/'), 'a')], ['exact T/a/ a']],
] as const)
  test(`pathRows() leads paths by ${what}`, (t) => {
    t.deepEqual(waysOf(entries), expected);
  });

test('pathRows() continues a list that is too long for a row in another one', (t) => {
  const entries = Array.from({ length: 300 }, (_, at) =>
    entryOf(
      matchOf('/', { headers: [{ name: 'x', kind: 'exact', value: `${at}`.padEnd(50, '-') }] }),
      `s${at}`,
    ),
  );
  const rows = pathRows({ host: patternOf('h'), entries }, 'T');
  t.true(rows.every(({ value }) => value.length <= 8_100));
  t.true(rows.filter(({ map }) => map === 'lists').length > 1);
  const [way = ''] = waysOf(entries);
  t.deepEqual(
    Array.from(way.matchAll(/s(\d+) hx/g), ([, at]) => Number(at)),
    entries.map((_, at) => at),
    'in the order of precedence',
  );
});

test('pathRows() adds each row after those that it leads to', (t) => {
  const rows = pathRows(
    {
      host: patternOf('h'),
      entries: [
        entryOf(matchOf('/a', post), { a: 1, b: 2 }),
        entryOf('/a', { a: 2, b: 1 }),
        entryOf('=/x', { a: 1, b: 2 }),
      ],
    },
    'T',
  );
  const known = new Set<string>();
  for (const { map, key, value } of rows) {
    for (const target of value.match(/[?r]:?[0-9a-f]{24}/g) ?? []) t.true(known.has(target), `${map} ${key}`);
    known.add(key);
  }
});

test('pathRows() answers 500 where a route does not fit into a row, and no wider route serves', (t) => {
  const long = entryOf(`/${'x'.repeat(5_000)}`, 'a');
  const wide = entryOf(
    matchOf('/a', { headers: [{ name: 'x', kind: 'exact', value: 'é'.repeat(2_000) }] }),
    'a',
  );
  const refused = 'e500@HTTPRoute/default/route#0';
  t.deepEqual(waysOf([long, wide, entryOf('/', 'b')]), [
    `prefix T/ [[${refused} P0], b]`,
    `prefix T/a/ [[${refused} P0], [${refused} Hx=1, b]]`,
  ]);
});

test('pathRows() names the rule behind each target, also in lists', (t) => {
  const name = 'HTTPRoute default/api#2';
  const rows = pathRows(
    {
      host: patternOf('h'),
      entries: [
        entryOf(matchOf('/a', post), 'a', { name }),
        entryOf('/a', '-', { name: 'GRPCRoute default/b#0' }),
      ],
    },
    'T',
  );
  t.deepEqual(
    rows.filter(({ map }) => map === 'lists').map(({ value }) => value),
    ['pool:default:a:tcp:80:v4@HTTPRoute/default/api#2&mPOST|e500@GRPCRoute/default/b#0'],
  );
  const [only] = pathRows({ host: patternOf('h'), entries: [entryOf('/', 'a', { name })] }, 'T');
  t.is(only?.value, 'pool:default:a:tcp:80:v4@HTTPRoute/default/api#2');
});

test('pathRows() makes rows in proportion to the routes, whatever they could make of each other', (t) => {
  const candidatesOf = (count: number): number => {
    const entries = Array.from({ length: count }, (_, at) => [
      entryOf(`~/r${at}`, 'r'),
      entryOf(matchOf(`/p${at}`, post), 'a'),
      entryOf(matchOf(`${'/x'.repeat(at)}`, post), 'b'),
      entryOf(matchOf(`=/e${at}`, post), 'c'),
    ]).flat();
    const rows = pathRows({ host: patternOf('h'), entries }, 'T');
    return rows.reduce((sum, { value }) => sum + value.split('|').length, 0);
  };
  t.true(candidatesOf(80) < 4.5 * candidatesOf(20), `${candidatesOf(20)} and ${candidatesOf(80)} candidates`);
});
