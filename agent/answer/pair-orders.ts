// The orders that the agent's socket takes, for a host with a peer and for one without.

import type { OrderOutcome } from '../pair/orders/orders.ts';
import type { Pair } from '../pair/pair.ts';

/** What an operator may order, as the agent's socket takes it. */
export function pairOrders(
  pair: Pair | undefined,
): Readonly<Record<string, (query: URLSearchParams) => Promise<OrderOutcome>>> {
  return {
    failover: async (query) => pair?.failover(query.get('force') === 'true') ?? noPeer,
    maintenance: async (query) => pair?.maintenance(query.get('turn') === 'on') ?? noPeer,
  };
}

const noPeer: OrderOutcome = {
  ok: false,
  active: 'unknown',
  tookMs: 0,
  message: 'This host has no peer: set "pairPeer"',
};
