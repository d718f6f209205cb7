// How many connections HAProxy may take, from the file descriptors that it may open: each connection needs two, each
// listener and each checked member one. HAProxy refuses to start when its sum does not fit, so the sum is made here.

import { readFileSync } from 'node:fs';
import type { LoadBalancer } from '../../model/load-balancer.ts';
import { isForHaproxy } from './listener-config.ts';

/** Sockets, pipes, log, peers, idle server connections' slack. */
const OWN_DESCRIPTORS = 500;
/** More would only cost memory: HAProxy keeps 64 bytes and more per descriptor, used or not. */
const MOST_CONNECTIONS = 200_000;
const FEWEST_CONNECTIONS = 100;

export interface Needs {
  readonly listeners: number;
  readonly checks: number;
}

export function needsOf(loadBalancers: Iterable<LoadBalancer>): Needs {
  let listeners = 0;
  let checks = 0;
  for (const loadBalancer of loadBalancers) {
    for (const listener of loadBalancer.listeners) {
      if (!isForHaproxy(listener)) continue;
      listeners += listener.addresses.length;
      if (listener.pool.monitor !== undefined) checks += listener.pool.members.length;
    }
  }
  return { listeners, checks };
}

/**
 * Connections that fit, as many as `wanted` at most, or computed where that is 0. Needs are rounded up to a power of
 * two, so that a few more listeners change nothing and members added at runtime find room for their checks.
 */
export function maxConnections(
  wanted: number,
  fileLimit: number,
  needs: Needs,
): { value: number; problem: string | undefined } {
  const reserved = OWN_DESCRIPTORS + roundUp(needs.listeners + needs.checks);
  const fit = Math.floor((fileLimit - reserved) / 2);
  const most = wanted > 0 ? wanted : MOST_CONNECTIONS;
  const value = most <= fit ? most : Math.max(FEWEST_CONNECTIONS, roundDown(fit));
  const asked = wanted > 0 ? wanted : value;
  if (asked <= fit) return { value, problem: undefined };
  const needed = reserved + 2 * asked;
  const instead = value < asked ? `, so it takes ${value} connections` : '';
  return {
    value,
    problem: `HAProxy needs ${needed} file descriptors for ${asked} connections, ${needs.listeners} listeners and ${needs.checks} health checks, but the limit is ${fileLimit}${instead}: raise LimitNOFILE (ulimit -n) or lower the setting maxConnections`,
  };
}

function roundUp(count: number): number {
  let size = 256;
  while (size < count) size *= 2;
  return size;
}

/** To two leading digits, for a number that people recognise. */
function roundDown(count: number): number {
  if (count < 100) return Math.max(0, count);
  const unit = 10 ** (Math.floor(Math.log10(count)) - 1);
  return Math.floor(count / unit) * unit;
}

/** The hard limit of open files of this process, which a HAProxy that it starts inherits. */
export function fileLimit(read: (path: string) => string = (path) => readFileSync(path, 'utf8')): number {
  const hard = /^Max open files\s+\S+\s+(\S+)/m.exec(read('/proc/self/limits'))?.[1];
  return hard === 'unlimited' || hard === undefined ? 1_048_576 : Number(hard);
}
