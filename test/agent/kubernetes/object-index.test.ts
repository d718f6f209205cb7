import test from 'ava';
import { ObjectIndex } from '../../../agent/kubernetes/object-index.ts';
import { parsed, routeJson } from '../../support/values/gateways.ts';

const routeOf = (name: string, hostname: string, parent = 'edge') =>
  parsed(routeJson(name, [{ name: parent }], { hostnames: [hostname] }));
const PLACE = 'routes gateway default/edge';

test('ObjectIndex keeps the position of a changed object, and loses it where it is no longer', (t) => {
  const index = new ObjectIndex();
  const [a, b, c] = ['a', 'b', 'c'].map((name) => routeOf(name, `${name}.org`));
  for (const each of [a, b, c]) index.replace(undefined, each, new Set());
  const next = routeOf('a', 'new.org');
  const dirty = new Set<never>();
  index.replace(a, next, dirty);
  t.deepEqual(index.at(PLACE), [next, b, c] as never);
  t.deepEqual([...dirty], [PLACE] as never);
  const moved = routeOf('a', 'new.org', 'other');
  index.replace(next, moved, new Set());
  t.deepEqual(index.at(PLACE), [b, c] as never);
  t.deepEqual(index.at('routes gateway default/other'), [moved] as never);
  index.replace(moved, undefined, new Set());
  t.deepEqual(index.at('routes gateway default/other'), []);
});
