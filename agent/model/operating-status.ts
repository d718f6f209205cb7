// The operating status of load balancers, listeners, pools and members, in Octavia's terms.

/**
 * - `ONLINE`: healthy; a member has passed its checks.
 * - `DRAINING`: a member keeps its connections and gets no new ones; a pool has only such members.
 * - `OFFLINE`: the dataplane does not serve it, or it has no members.
 * - `DEGRADED`: some members fail their checks, or what clients send.
 * - `ERROR`: a member fails its checks, or all that clients tried in the last minute; all ready members of a pool do.
 * - `NO_MONITOR`: a member without a health monitor: whether it answers is not known until clients try.
 */
export type OperatingStatus = (typeof OPERATING_STATUSES)[number];
export const OPERATING_STATUSES = [
  'ONLINE',
  'DRAINING',
  'OFFLINE',
  'DEGRADED',
  'ERROR',
  'NO_MONITOR',
] as const;
