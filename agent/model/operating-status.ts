// How load balancers, listeners, pools and members are doing, in Octavia's words.

/**
 * - `ONLINE`: all is well; a member has passed its checks.
 * - `DRAINING`: a member keeps its connections and gets no new ones; a pool has no others.
 * - `OFFLINE`: the dataplane does not serve it, or there is nothing that it could send to.
 * - `DEGRADED`: some members of it fail their checks.
 * - `ERROR`: a member fails its checks; all ready members of a pool do.
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
