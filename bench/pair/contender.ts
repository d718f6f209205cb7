// One of those who are compared as a pair: what the rows do to it.

import type { HostName } from './network.ts';

export interface PairContender {
  readonly name: string;
  /** The host with the VIPs, once both are well and there is nothing to wait for. */
  readonly settled: () => Promise<HostName>;
  /** Hands the VIPs over from the host that has them, in the way that is meant for it. */
  readonly handOver: (active: HostName) => Promise<void>;
  /** Has both as they were before, after a handover. */
  readonly restore: () => Promise<void>;
}

/** Where the VIPs are, and the port that all have. */
export const PORT = 8080;
export const MEMBER_PORT = 9000;
/** Milliseconds, of both contenders. */
export const ADVERT_INTERVAL = 200;

/** One in five is in the network of the client; the others are behind the anchor. */
export function vipAt(index: number): string {
  const within = index % 5 === 0 ? '10.9' : '10.10';
  return `${within}.${1 + Math.floor(index / 200)}.${1 + (index % 200)}`;
}

export function otherThan(host: HostName): HostName {
  return host === 'a' ? 'b' : 'a';
}
