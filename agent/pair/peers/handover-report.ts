// What the agents of a pair tell each other of a planned failover: a part of their reports. Pure: from a value that
// somebody else has written, field by field.

import { parseAddress } from '../../base/ip.ts';

/** Where a host is on the network of the VIPs. */
export interface Link {
  /** Of its interface; '' where it is not known. */
  readonly ether: string;
  /** Its own addresses there, '' where it has none. */
  readonly v4: string;
  readonly v6: string;
}

export interface HandoverReport {
  /** Whether this host can take VIPs over without cutting the peer's connections. */
  readonly can: boolean;
  /** Whether this host can give VIPs away without cutting its connections. */
  readonly gives: boolean;
  readonly link: Link;
  /** The order to hand over that this host carries out: 16 hex digits, '' for none. */
  readonly asks: string;
  /** The peer's order for which this host is prepared. */
  readonly ready: string;
  /** The wish of this host for VIPs that the peer has: 16 hex digits, '' for none. */
  readonly wants: string;
  /** How many connections to VIPs that it has handed over go on here; -1 where that is not known yet. */
  readonly left: number;
}

export const noLink: Link = { ether: '', v4: '', v6: '' };

export const noHandover: HandoverReport = {
  can: false,
  gives: false,
  link: noLink,
  asks: '',
  ready: '',
  wants: '',
  left: 0,
};

/** undefined where it is none; what is not told counts as in `noHandover`. */
export function parseHandover(value: unknown): HandoverReport | undefined {
  if (value === undefined) return noHandover;
  if (!isMapping(value)) return undefined;
  const { can = false, gives = false, link = noLink, asks = '', ready = '', wants = '', left = 0 } = value;
  if (typeof can !== 'boolean' || typeof gives !== 'boolean') return undefined;
  if (!isToken(asks) || !isToken(ready) || !isToken(wants) || !isMapping(link)) return undefined;
  const { ether = '', v4 = '', v6 = '' } = link;
  if (!isText(ether, /^(([0-9a-f]{2}:){5}[0-9a-f]{2})?$/)) return undefined;
  if (!isAddress(v4, 'v4') || !isAddress(v6, 'v6')) return undefined;
  if (typeof left !== 'number' || !Number.isSafeInteger(left) || left < -1) return undefined;
  return { can, gives, link: { ether, v4, v6 }, asks, ready, wants, left };
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isToken(value: unknown): value is string {
  return isText(value, /^([0-9a-f]{16})?$/);
}

function isText(value: unknown, pattern: RegExp): value is string {
  return typeof value === 'string' && pattern.test(value);
}

/** Canonical, or ''. */
function isAddress(value: unknown, family: 'v4' | 'v6'): value is string {
  if (value === '') return true;
  const parsed = typeof value === 'string' ? parseAddress(value) : undefined;
  return parsed?.family === family && parsed.address === value;
}
