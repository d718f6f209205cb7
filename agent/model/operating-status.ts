// The operating status of load balancers, listeners, pools and members, in Octavia's terms.

/**
 * - `ONLINE`: healthy; a member has passed its checks.
 * - `DRAINING`: a member keeps its connections and gets no new ones; a pool has only such members.
 * - `OFFLINE`: the dataplane does not serve it, or it has no members.
 * - `DEGRADED`: some members fail their checks.
 * - `ERROR`: a member fails its checks; all ready members of a pool fail theirs.
 * - `NO_MONITOR`: a member without a health monitor.
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
