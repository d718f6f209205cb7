// The effect of a worker's state on traffic, to compare two workers that reached their states in different ways.

import type { Running } from '../../../agent/haproxy/running.ts';

/**
 * For each listener the serving members with their weights (0 means only existing connections) and the allowed clients. A
 * server with weight 0 in the file has the same effect as a server that a command drains.
 */
export function effectOf(running: Running, listeners: Iterable<string>) {
  return [...listeners].sort().map((name) => {
    const { servers = new Map(), allowed = [] } = running.get(name) ?? {};
    const serving = [...servers]
      .filter(([, { state }]) => state === 'ready' || state === 'drain')
      .map(([server, { id, state, weight }]) => [server, id, state === 'ready' ? weight : 0])
      .sort();
    return { name, serving, allowed: allowed.flatMap(({ cidrs }) => [...cidrs]).sort() };
  });
}
