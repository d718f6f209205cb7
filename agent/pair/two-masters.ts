// Detects that both hosts of a pair are master for longer than a takeover lasts. Pure.

import { contested, type Roles } from './roles.ts';

const TAKEOVER_MS = 1_000;

export interface MastersSeen {
  /** By instance: when both were master first, milliseconds. */
  readonly since: Readonly<Record<string, number>>;
  /** The instances that have two masters. */
  readonly names: readonly string[];
}

export const oneMaster: MastersSeen = { since: {}, names: [] };

/**
 * `now` in milliseconds of a monotonic clock; `peer` is undefined without a recent report. `isFresh`: the report has just
 * come and all input has been read; a host without processor time may work with old roles otherwise.
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
  const lasts = (name: string): boolean => now - (since[name] ?? now) > TAKEOVER_MS;
  return { since, names: both.filter((name) => before.names.includes(name) || (isFresh && lasts(name))) };
}
