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

/**
 * `now` in milliseconds that never go back. A peer that is not heard (undefined) says nothing. `isFresh`: the peer has
 * said it just now, and all that this host was told has been read; on a host without processor what it knows is old.
 */
export function nextMasters(
  before: MastersSeen,
  own: Roles,
  peer: Roles | undefined,
  { now, isFresh }: { readonly now: number; readonly isFresh: boolean },
): MastersSeen {
  const both = peer === undefined ? [] : contested(own, peer);
  if (both.length === 0) return oneMaster;
  const since = Object.fromEntries(both.map((name) => [name, before.since[name] ?? now]));
  const lasts = (name: string): boolean => now - (since[name] ?? now) > SETTLING;
  return { since, names: both.filter((name) => before.names.includes(name) || (isFresh && lasts(name))) };
}
