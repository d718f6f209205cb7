// Addresses for Gateways and IngressClasses that have none in the compared objects, because their pools are elsewhere: without one
// nothing of them would be compared. Pure.

import type { DesiredState } from '../../model/desired-state.ts';
import { ownerOf } from '../../model/names.ts';

/** By owner. */
export type StandIns = ReadonlyMap<string, string>;

type State = Pick<DesiredState, 'loadBalancers'>;

/** An owner of both states has the same one in both; one that goes gives its own to one that comes, as in a migration. */
export function standIns(before: State, after: State): readonly [before: StandIns, after: StandIns] {
  const [old, now] = [ownersWithout(before), ownersWithout(after)];
  const both = old.filter((key) => now.includes(key));
  const addresses = freeAddresses(Math.max(old.length, now.length), [before, after]);
  const numbered = (keys: readonly string[]): StandIns => {
    const only = keys.filter((key) => !both.includes(key));
    return new Map([...both, ...only].map((key, at) => [key, addresses[at] ?? '']));
  };
  return [numbered(old), numbered(now)];
}

function ownersWithout({ loadBalancers }: State): readonly string[] {
  return [...loadBalancers.values()]
    .filter(({ key, vips }) => vips.length === 0 && ['Gateway', 'Ingress'].includes(ownerOf(key).kind))
    .map(({ key }) => key)
    .sort();
}

/** RFC 2544 has 198.18.0.0/15 for tests; some of it may be in use in one. */
function freeAddresses(count: number, states: readonly State[]): readonly string[] {
  const vips = states.flatMap(({ loadBalancers }) =>
    [...loadBalancers.values()].flatMap((each) => each.vips),
  );
  const taken = new Set(vips.map(({ address }) => address));
  const free: string[] = [];
  for (let number = 1; free.length < count; number++) {
    const address = `198.${18 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`;
    if (!taken.has(address)) free.push(address);
  }
  return free;
}
