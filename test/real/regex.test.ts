// Regular expressions of routes, also such whose matching takes exponential time where it goes back: HAProxy looks at each
// byte once.

import ava from 'ava';
import type { RouteMatch } from '../../agent/model/routes.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { startRendered } from '../support/haproxy/rendered-haproxy.ts';
import { request, startEcho } from '../support/traffic/echo.ts';
import { entryOf, gatewayOf, matchOf, poolOf, sectionOf } from '../support/values/routes.ts';

const test = requires(ava, { haproxy: true });

const host = 'a.example.org';
/** Its second half matches, after all ways in which its first half does not: two to the power of the length. */
const EXPLODING = '(?:(?:a+)+b|a+!)';
/** More ways than any program could try. */
const LONG = 200;

const text = (kind: 'headers' | 'query'): Partial<RouteMatch> => ({
  [kind]: [{ name: 'x', kind: 'regex', value: EXPLODING }],
});

const CASES: readonly (readonly [
  what: string,
  match: RouteMatch,
  ask: (value: string) => readonly [url: string, headers?: Readonly<Record<string, string>>],
])[] = [
  ['path', matchOf(`~/${EXPLODING}`), (value) => [`/${value}`]],
  ['header', matchOf('/', text('headers')), (value) => ['/', { x: value }]],
  ['query parameter', matchOf('/', text('query')), (value) => [`/?x=${value}`]],
];

for (const [what, match, ask] of CASES)
  test(`A regular expression of a ${what} with two ways for each character matches`, async (t) => {
    const place = { address: '127.0.0.1', port: await freePort() };
    const pools = ['matched', 'other'] as const;
    const members = await Promise.all(pools.map((name) => startEcho(t, name)));
    const entries = [entryOf(match, 'matched'), entryOf('/', 'other')];
    await startRendered(t, [
      gatewayOf(place, [sectionOf('http', '*', { [host]: entries })]),
      ...pools.map((name, at) => poolOf(name, [members[at] ?? ''])),
    ]);
    const memberFor = async (length: number) => {
      const [url, headers] = ask(`${'a'.repeat(length)}!`);
      return (await request(place, url, { headers: { host, ...headers } })).echo?.member;
    };
    t.is(await memberFor(5), 'matched');
    t.is(await memberFor(LONG), 'matched');
    t.is(await memberFor(0), 'other');
  });

test('A regular expression that looks at a long path once matches it', async (t) => {
  const place = { address: '127.0.0.1', port: await freePort() };
  const member = await startEcho(t, 'a');
  const entries = [entryOf(matchOf('~/(?:[a-z]+/)*x\\d+/.*\\.html$'), 'a')];
  const sections = [sectionOf('http', '*', { [host]: entries })];
  await startRendered(t, [gatewayOf(place, sections), poolOf('a', [member])]);
  const url = `/${'folder/'.repeat(800)}x12/${'y'.repeat(1_000)}.html`;
  t.is((await request(place, url, { headers: { host } })).status, 200);
});
