import test from 'ava';
import type { RouteEntry, RouteMatch } from '../../../../agent/model/routes.ts';
import { inOrder, type RouteEntries } from '../../../../agent/translate/routes/host-routes.ts';
import { shadowedRoutes } from '../../../../agent/translate/routes/shadowed-routes.ts';
import { ruleOf } from '../../../support/values/routes.ts';

let made = 0;

const matchOf = (given: Partial<RouteMatch>): RouteMatch => ({
  path: { kind: 'prefix', value: '' },
  method: '',
  headers: [],
  query: [],
  ...given,
});

/** A route of its own for each list of matches. */
function route(matches: readonly RouteMatch[], created = 1, key = `default/route-${++made}`): RouteEntries {
  const entries = matches.map((match, index): RouteEntry => {
    return { match, rule: ruleOf({ kind: 'answer', status: 404 }, { name: `${key}#${index}` }) };
  });
  return { created, key, entries };
}

const header = (name: string) => ({ name, kind: 'exact', value: '1' }) as const;
const path = (kind: 'exact' | 'prefix' | 'regex', value: string) => matchOf({ path: { kind, value } });

/** What precedes what, each for the reason in the title. */
const ORDER: readonly (readonly [title: string, first: RouteMatch, second: RouteMatch])[] = [
  ['An exact path precedes a longer prefix', path('exact', '/a'), path('prefix', '/a/b/c')],
  ['A longer prefix precedes a shorter one', path('prefix', '/a/b'), path('prefix', '/a')],
  [
    'A longer path precedes a shorter one that also wants a method',
    path('prefix', '/a/b'),
    matchOf({ path: { kind: 'prefix', value: '/a' }, method: 'GET' }),
  ],
  [
    'A method precedes more headers',
    matchOf({ method: 'GET' }),
    matchOf({ headers: [header('a'), header('b')] }),
  ],
  [
    'More headers precede fewer',
    matchOf({ headers: [header('a'), header('b')] }),
    matchOf({ headers: [header('a')] }),
  ],
  [
    'A header precedes more query parameters',
    matchOf({ headers: [header('a')] }),
    matchOf({ query: [header('a'), header('b')] }),
  ],
  [
    'More query parameters precede fewer',
    matchOf({ query: [header('a'), header('b')] }),
    matchOf({ query: [header('a')] }),
  ],
];

for (const [title, first, second] of ORDER)
  test(title, (t) => {
    // The order of the routes, and their age, say the opposite.
    const older = route([second], 1);
    const younger = route([first], 2);
    t.deepEqual(
      inOrder([older, younger]).map(({ match }) => match),
      [first, second],
    );
  });

test('Of equal matches the older route counts, then the first by namespace and name, then the first rule', (t) => {
  const any = matchOf({});
  const routes = [route([any, any], 2, 'b/a'), route([any], 2, 'a/z'), route([any], 1, 'z/z')];
  t.deepEqual(
    inOrder(routes).map(({ rule }) => rule.name),
    ['z/z#0', 'a/z#0', 'b/a#0', 'b/a#1'],
  );
});

test('Regular expressions come before all prefixes, or, by length, before those that are not longer; exact paths before both', (t) => {
  const [exact, longer, same, regex, shorter] = [
    path('exact', '/a'),
    path('prefix', '/api/admin'),
    path('prefix', '/api/ab'),
    path('regex', '/api/.*'),
    path('prefix', '/api'),
  ];
  const routes = [route([shorter, same, longer, regex, exact])];
  const orderOf = (...given: Parameters<typeof inOrder>) => inOrder(...given).map(({ match }) => match);
  t.deepEqual(orderOf(routes), [exact, regex, longer, same, shorter]);
  t.deepEqual(orderOf(routes, 'by-length'), [exact, longer, regex, same, shorter]);
});

test('By length a prefix counts as its author wrote it, and never more than one below it', (t) => {
  const written = (value: string, length: number) => ({
    ...matchOf({}),
    path: { kind: 'prefix' as const, value, length },
  });
  const api = written('/api', 13);
  const deep = written('/api/health', 20);
  const regex = path('regex', '(?i)/api/x.*');
  const below = path('prefix', '/api/v1');
  const orderOf = (...given: ReturnType<typeof matchOf>[]) =>
    inOrder([route(given)], 'by-length').map(({ match }) => match);
  t.deepEqual(orderOf(regex, api, deep), [deep, api, regex]);
  t.deepEqual(orderOf(regex, api, below), [regex, below, api]);
});

test('Two spellings of a path are one: the older route decides, and the younger is told', (t) => {
  for (const order of ['first', 'by-length'] as const) {
    const [older, younger] = [
      route([path('prefix', '/admin')], 1, 'a/older'),
      route([path('prefix', '/%61dmin')], 2, 'b/younger'),
    ];
    const entries = inOrder([younger, older], order);
    t.deepEqual(
      entries.map(({ rule }) => rule.name),
      ['a/older#0', 'b/younger#0'],
    );
    const problems = shadowedRoutes({
      host: { kind: 'exact', suffix: 'example.org' },
      entries: named(entries),
    });
    t.regex(problems.map(({ message }) => message).join(), /^Path "\/%61dmin" .* gets no request/);
  }
});

/** Each of a route object of its own. */
function named(entries: readonly RouteEntry[]): readonly RouteEntry[] {
  return entries.map(({ match, rule }) => ({ match, rule: { ...rule, route: rule.name } }));
}
