// The places of pools follow from those of the load balancers that send to them, whatever happens in whatever order.

import test from 'ava';
import fc from 'fast-check';
import { type Place, Places } from '../../../agent/dataplane/places.ts';
import type { LoadBalancer } from '../../../agent/model/load-balancer.ts';
import { PoolUses } from '../../../agent/model/pool-uses.ts';
import { gatewayOf, poolOf } from '../../support/values/routes.ts';

const OWNERS = ['a', 'b', 'c'] as const;
const POOLS = ['x', 'y', 'z'] as const;
const keyOfOwner = (name: string): string => `gateway:default/${name}`;
const keyOfPool = (name: string): string => `pool:default/${name}`;

const owner = fc.constantFrom(...OWNERS);
const step = fc.oneof(
  fc.record({ kind: fc.constant('place'), owner, place: fc.constantFrom('main', 'landing', 'moving') }),
  fc.record({
    kind: fc.constant('uses'),
    owner,
    uses: fc.uniqueArray(fc.record({ pool: fc.constantFrom(...POOLS), port: fc.constantFrom(80, 81) }), {
      selector: ({ pool, port }) => `${pool} ${port}`,
    }),
  }),
  fc.record({ kind: fc.constant('keep'), owner, there: fc.subarray([...POOLS]) }),
  fc.record({ kind: fc.constant('drop'), owner }),
);

test('Places has a pool exactly where load balancers need it, and names each pool whose place has changed', (t) => {
  const property = fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
    const desired = new Map<string, LoadBalancer>();
    for (const name of OWNERS)
      desired.set(keyOfOwner(name), {
        ...gatewayOf({ address: '192.0.2.1', port: 80 }, []),
        key: keyOfOwner(name),
      });
    for (const name of POOLS) desired.set(keyOfPool(name), poolOf(name, []));
    const uses = new PoolUses();
    const places = new Places(desired, uses);
    const usedBy = new Map<string, readonly string[]>();
    const kept = new Map<string, readonly string[]>();
    let before = new Map<string, Place>();
    for (const each of steps) {
      const key = keyOfOwner(each.owner);
      switch (each.kind) {
        case 'place':
          places.set(key, each.place as 'main' | 'landing' | 'moving');
          if (each.place !== 'landing') kept.delete(key);
          break;
        case 'uses': {
          const own = (each as { uses: { pool: string; port: number }[] }).uses;
          uses.update(
            key,
            own.map(({ pool, port }) => ({ pool: keyOfPool(pool), port })),
          );
          usedBy.set(
            key,
            own.map(({ pool }) => keyOfPool(pool)),
          );
          break;
        }
        case 'keep': {
          if (places.of(key) !== 'landing') break;
          const there = (each as { there: string[] }).there.map(keyOfPool);
          places.keep(key, desired.get(key) as LoadBalancer, (pool) => there.includes(pool));
          kept.set(
            key,
            (usedBy.get(key) ?? []).filter((pool) => !there.includes(pool)),
          );
          break;
        }
        default:
          places.drop(key);
          kept.delete(key);
      }
      const now = new Map<string, Place>();
      for (const name of POOLS) {
        const pool = keyOfPool(name);
        const users = OWNERS.map(keyOfOwner).filter((user) => usedBy.get(user)?.includes(pool));
        const needs = (place: Place): boolean => users.some((user) => places.of(user) === place);
        const isKept = users.some((user) => kept.get(user)?.includes(pool) === false);
        const isInLanding = needs('landing') || needs('moving');
        const isInMain = !isInLanding || needs('main') || needs('moving') || isKept;
        t.deepEqual([places.main.has(pool), places.landing.has(pool)], [isInMain, isInLanding]);
        t.is(places.main.get(pool), isInMain ? desired.get(pool) : undefined);
        t.deepEqual(
          [[...places.main.keys()].includes(pool), [...places.landing.keys()].includes(pool)],
          [isInMain, isInLanding],
        );
        now.set(pool, places.of(pool));
      }
      const changed = [...now].filter(([pool, place]) => (before.get(pool) ?? 'main') !== place);
      t.deepEqual([...places.changedPools()].sort(), changed.map(([pool]) => pool).sort());
      before = now;
    }
  });
  fc.assert(property);
});
