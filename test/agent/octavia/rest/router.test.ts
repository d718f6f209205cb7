import test from 'ava';
import { json } from '../../../../agent/octavia/rest/reply.ts';
import { findRoute, type Route } from '../../../../agent/octavia/rest/router.ts';

const route = (method: Route['method'], pattern: string): Route => ({
  method,
  pattern,
  answer: async () => json(200, {}),
});
const ROUTES = [route('GET', ''), route('GET', 'a/:x/b'), route('PUT', 'a/:x/:y'), route('GET', 'a')];

const find = (method: string, url: string) => {
  const found = findRoute(ROUTES, method, url);
  return found.kind === 'route' ? [found.route.pattern, Object.fromEntries(found.params)] : found.kind;
};

test('findRoute() gives the route of a method and a path with its parameters', (t) => {
  t.deepEqual(find('GET', '/1.0/a/1/b?query'), ['a/:x/b', { x: '1' }]);
  t.deepEqual(find('PUT', '/1.0/a/1/b'), ['a/:x/:y', { x: '1', y: 'b' }]);
  t.deepEqual(find('HEAD', '/1.0/a'), ['a', {}]);
  t.deepEqual(find('GET', '//'), ['', {}]);
});

test('findRoute() tells a wrong method from a path that is not there', (t) => {
  t.is(find('DELETE', '/1.0/a/1/b'), 'wrong method');
  t.is(find('GET', '/1.0/b'), 'not found');
  t.is(find('GET', '/0.5/a'), 'not found');
  t.is(find('GET', '/1.0'), 'not found');
});

test('findRoute() finds nothing for a path with an empty, a torn or a nested segment', (t) => {
  for (const path of ['/1.0/a//b', '/1.0/a/%/b', '/1.0/a/%2F/b', '/1.0/a/x%2Fy/b', '/1.0/a/%00/b', ''])
    t.is(find('GET', path), 'not found', path);
});
