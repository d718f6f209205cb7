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
  const numbered = (keys: readonly string[]): StandIns => {
    const only = keys.filter((key) => !both.includes(key));
    return new Map([...both, ...only].map((key, at) => [key, addressAt(at)]));
  };
  return [numbered(old), numbered(now)];
}

function ownersWithout({ loadBalancers }: State): readonly string[] {
  return [...loadBalancers.values()]
    .filter(({ key, vips }) => vips.length === 0 && ['Gateway', 'Ingress'].includes(ownerOf(key).kind))
    .map(({ key }) => key)
    .sort();
}

/** RFC 2544 has 198.18.0.0/15 for tests. */
function addressAt(at: number): string {
  const number = at + 1;
  return `198.${18 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`;
}
