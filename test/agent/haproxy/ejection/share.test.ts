import test from 'ava';
import fc from 'fast-check';
import { mayRest, tooMany } from '../../../../agent/haproxy/ejection/share.ts';
import type { Member, Pool } from '../../../../agent/model/load-balancer.ts';
import { POOL } from '../../../support/values/routes.ts';

const nameOf = (at: number): string => `10.0.0.${at}:80`;

function poolOf(count: number, share = 34, changes: Partial<Member> = {}): Pool {
  const members = Array.from({ length: count }, (_, at): Member => {
    const name = nameOf(at);
    return {
      name,
      id: at + 1,
      address: '10.0.0.1',
      port: 80,
      weight: 16,
      state: 'ready',
      target: '',
      ...changes,
    };
  });
  return { ...POOL, ejection: { after: 3, statuses: '500', share }, members };
}

/** How many of a pool may rest, if each of them tries. */
function most(pool: Pool, isDown: (name: string) => boolean = () => false): number {
  const resting = new Set<string>();
  for (const { name } of pool.members)
    if (mayRest(pool, name, (each) => ({ rests: resting.has(each), isDown: isDown(each) })))
      resting.add(name);
  return resting.size;
}

test('mayRest() lets a third of the members rest by default, one of two, and not the only one', (t) => {
  t.deepEqual(
    [0, 1, 2, 3, 4, 5, 6, 9, 12, 30].map((count) => most(poolOf(count))),
    [0, 0, 1, 1, 1, 1, 2, 3, 4, 10],
  );
});

test('mayRest() counts no members that drain, have weight 0 or are down', (t) => {
  t.is(most(poolOf(3, 34, { state: 'drain' })), 0);
  t.is(most(poolOf(3, 34, { weight: 0 })), 0);
  t.false(mayRest(poolOf(2), nameOf(0), (name) => ({ rests: false, isDown: name === nameOf(1) })));
});

test('mayRest() leaves one that takes connections, whatever the share and the size', (t) => {
  const size = fc.integer({ min: 1, max: 40 });
  const property = fc.property(size, fc.integer({ min: 1, max: 99 }), (count, share) => {
    const resting = most(poolOf(count, share));
    return resting < count && (resting <= 1 || resting <= (count * share) / 100);
  });
  t.notThrows(() => fc.assert(property));
});

test('tooMany() names the members that come back if a pool has become smaller', (t) => {
  const known = () => ({ rests: false, isDown: false });
  const resting = [nameOf(0), nameOf(1)];
  t.deepEqual(tooMany(poolOf(6), resting, known), []);
  t.deepEqual(tooMany(poolOf(4), resting, known), [nameOf(0)]);
  t.deepEqual(tooMany(poolOf(2), resting, known), resting);
  t.deepEqual(tooMany(poolOf(6), ['10.9.9.9:80', ...resting], known), []);
});
