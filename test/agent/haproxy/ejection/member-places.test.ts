import test from 'ava';
import fc from 'fast-check';
import { MemberPlaces } from '../../../../agent/haproxy/ejection/member-places.ts';
import type { LoadBalancer } from '../../../../agent/model/load-balancer.ts';
import { POOL, poolOf } from '../../../support/values/routes.ts';

const ejection = { after: 3, statuses: '500', share: 34 };

function pool(service: string, members: readonly number[], ejects = true): LoadBalancer {
  const names = members.map((at) => `10.0.0.${at}:80`);
  return poolOf(service, names, { pool: { ...POOL, ...(ejects && { ejection }) } });
}

test('MemberPlaces finds the pools of a member after any changes', (t) => {
  const change = fc.record({
    service: fc.constantFrom('a', 'b', 'c'),
    members: fc.option(fc.uniqueArray(fc.integer({ min: 1, max: 5 })), { nil: undefined }),
    ejects: fc.boolean(),
  });
  const property = fc.property(fc.array(change), (changes) => {
    const places = new MemberPlaces();
    const expected = new Map<string, LoadBalancer>();
    for (const { service, members, ejects } of changes) {
      const { key } = pool(service, []);
      const made = members && pool(service, members, ejects);
      places.put(key, made);
      if (made !== undefined && ejects) expected.set(key, made);
      else expected.delete(key);
    }
    for (let at = 1; at <= 5; at++) {
      const name = `10.0.0.${at}:80`;
      const having = [...expected.values()].filter(({ listeners }) =>
        listeners[0]?.pool.members.some((member) => member.name === name),
      );
      const found = places.of(`default:${name}`).map(({ key }) => key);
      if (JSON.stringify(found.sort()) !== JSON.stringify(having.map(({ key }) => key).sort())) return false;
      if (places.has(`default:${name}`) !== having.length > 0) return false;
    }
    return [...places.listeners()].length === expected.size;
  });
  t.notThrows(() => fc.assert(property));
});
