// Whether the cluster may be gone for good: no API server of it has answered for longer than the setting `clusterLostAfter`.
// It only tells: what the host serves, and its addresses, stay. Pure.

import type { ApiStatus } from './status.ts';

export interface LostTerms {
  /** The start of the agent, from which it counts before the first answer. */
  readonly startedAt: Date;
  /** Milliseconds; 0: never. */
  readonly afterMs: number;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** Since when no API server has answered, milliseconds since the epoch; 0 if that is not long, or without a cluster. */
export function lostSince(api: ApiStatus | undefined, { startedAt, afterMs, now }: LostTerms): number {
  // A watch without events is silent and has no fault.
  if (api === undefined || api.fault === '' || afterMs === 0) return 0;
  const since = Math.max(api.lastAnswer, startedAt.getTime());
  return now - since >= afterMs ? since : 0;
}
