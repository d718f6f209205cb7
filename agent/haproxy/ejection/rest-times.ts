// How long a member rests: longer each time that it fails again soon after it came back. Pure.

import { backoffMs } from '../../base/backoff.ts';

export const FIRST_REST_MS = 500;
const MOST_REST_MS = 60_000;
/** A member whose probes fail for this long is tried with requests: not every member answers probes. */
const FIRST_TRIAL_MS = 60_000;
const MOST_TRIAL_MS = 10 * 60_000;
/** A member that was well for this long, and for ten times its last rest, begins with a short one again. */
const WELL_MS = 60_000;

/** The last rest of a member. */
export interface PastRest {
  /** How many rests it was the last of, 1 or more. */
  readonly count: number;
  readonly endedAt: number;
}

/** The number of the rest that begins now. */
export function countOf(past: PastRest | undefined, now: number): number {
  if (past === undefined) return 1;
  const isWell = now - past.endedAt > Math.max(WELL_MS, 10 * restMs(past.count));
  return isWell ? 1 : past.count + 1;
}

/** Before the first probe counts. */
export function restMs(count: number): number {
  return backoffMs(count, { firstMs: FIRST_REST_MS, mostMs: MOST_REST_MS });
}

/** After which the member comes back whatever its probes say. */
export function trialMs(count: number): number {
  return backoffMs(count, { firstMs: FIRST_TRIAL_MS, mostMs: MOST_TRIAL_MS });
}
