// What a worker's state comes to: whoever compares two of them must not mind how it was reached.

import type { Running } from '../../../agent/haproxy/running.ts';

/**
 * Per listener who serves and with what weight (0: only the connections it has), and who is let in. A server that the
 * file lets drain by weight 0 has the same effect as one that was told to.
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
