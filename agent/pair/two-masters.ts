// Notices that both hosts of a pair say that they are master, which is more than the moment in which one takes over
// from the other. Pure.

import { contested, type Roles } from './roles.ts';

/** Milliseconds for which both may say so while they settle it. */
const SETTLING = 1_000;

export interface MastersSeen {
  /** Since when both have said so, milliseconds, by instance. */
  readonly since: Readonly<Record<string, number>>;
  /** The instances that have two masters. */
  readonly names: readonly string[];
}

export const oneMaster: MastersSeen = { since: {}, names: [] };

/** `now` in milliseconds that never go back. A peer that is not heard (undefined) says nothing. */
export function nextMasters(
  before: MastersSeen,
  own: Roles,
  peer: Roles | undefined,
  now: number,
): MastersSeen {
  const both = peer === undefined ? [] : contested(own, peer);
  if (both.length === 0) return oneMaster;
  const since = Object.fromEntries(both.map((name) => [name, before.since[name] ?? now]));
  return { since, names: both.filter((name) => now - (since[name] ?? now) > SETTLING) };
}
