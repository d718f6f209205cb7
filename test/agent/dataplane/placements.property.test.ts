// The placements of pools follow from those of the load balancers that send to them, whatever happens in whatever order.

import test from 'ava';
import fc from 'fast-check';
import { type Placement, Placements } from '../../../agent/dataplane/placements.ts';
import type { LoadBalancer } from '../../../agent/model/load-balancer.ts';
import { PoolUses } from '../../../agent/model/pool-uses.ts';
import { gatewayOf, poolOf } from '../../support/values/routes.ts';

const OWNERS = ['a', 'b', 'c'] as const;
const POOLS = ['x', 'y', 'z'] as const;
const keyOfOwner = (name: string): string => `gateway:default/${name}`;
const keyOfPool = (name: string): string => `pool:default/${name}`;

const owner = fc.constantFrom(...OWNERS);
const step = fc.oneof(
  fc.record({
    kind: fc.constant('placement'),
    owner,
    placement: fc.constantFrom('main', 'landing', 'moving'),
  }),
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

test('Placements has a pool exactly where load balancers need it, and names each pool whose placement has changed', (t) => {
  const property = fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
    const desired = new Map<string, LoadBalancer>();
    for (const name of OWNERS)
      desired.set(keyOfOwner(name), {
        ...gatewayOf({ address: '192.0.2.1', port: 80 }, []),
        key: keyOfOwner(name),
      });
    for (const name of POOLS) desired.set(keyOfPool(name), poolOf(name, []));
    const uses = new PoolUses();
    const placements = new Placements(desired, uses);
    const usedBy = new Map<string, readonly string[]>();
    const kept = new Map<string, readonly string[]>();
    let before = new Map<string, Placement>();
    for (const each of steps) {
      const key = keyOfOwner(each.owner);
      switch (each.kind) {
        case 'placement':
          placements.set(key, each.placement as 'main' | 'landing' | 'moving');
          if (each.placement !== 'landing') kept.delete(key);
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
          if (placements.of(key) !== 'landing') break;
          const there = (each as { there: string[] }).there.map(keyOfPool);
          placements.keep(key, desired.get(key) as LoadBalancer, (pool) => there.includes(pool));
          kept.set(
            key,
            (usedBy.get(key) ?? []).filter((pool) => !there.includes(pool)),
          );
          break;
        }
        default:
          placements.drop(key);
          kept.delete(key);
      }
      const now = new Map<string, Placement>();
      for (const name of POOLS) {
        const pool = keyOfPool(name);
        const users = OWNERS.map(keyOfOwner).filter((user) => usedBy.get(user)?.includes(pool));
        const needs = (placement: Placement): boolean =>
          users.some((user) => placements.of(user) === placement);
        const isKept = users.some((user) => kept.get(user)?.includes(pool) === false);
        const isInLanding = needs('landing') || needs('moving');
        const isInMain = !isInLanding || needs('main') || needs('moving') || isKept;
        t.deepEqual([placements.main.has(pool), placements.landing.has(pool)], [isInMain, isInLanding]);
        t.is(placements.main.get(pool), isInMain ? desired.get(pool) : undefined);
        t.deepEqual(
          [[...placements.main.keys()].includes(pool), [...placements.landing.keys()].includes(pool)],
          [isInMain, isInLanding],
        );
        now.set(pool, placements.of(pool));
      }
      const changed = [...now].filter(([pool, placement]) => (before.get(pool) ?? 'main') !== placement);
      t.deepEqual([...placements.changedPools()].sort(), changed.map(([pool]) => pool).sort());
      before = now;
    }
  });
  fc.assert(property);
});
