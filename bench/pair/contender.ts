// A contender of the rows that compare pairs of hosts.

import type { HostName } from './network.ts';

export interface PairContender {
  readonly name: string;
  /** Resolves with the host that holds the VIPs when both are healthy and at rest. */
  readonly settled: () => Promise<HostName>;
  /** Hands the VIPs over from the active host in the contender's own way. */
  readonly handOver: (active: HostName) => Promise<void>;
  /** Returns both hosts to their state before the handover. */
  readonly restore: () => Promise<void>;
}

/** The port of all VIPs. */
export const PORT = 8080;
export const MEMBER_PORT = 9000;
/** The interval of both contenders. */
export const ADVERT_INTERVAL_MS = 200;

/** One in five VIPs is in the client's network; the client reaches the others through the anchor. */
export function vipAt(index: number): string {
  const within = index % 5 === 0 ? '10.9' : '10.10';
  return `${within}.${1 + Math.floor(index / 200)}.${1 + (index % 200)}`;
}

export function otherThan(host: HostName): HostName {
  return host === 'a' ? 'b' : 'a';
}
