// `headgate failover`: hands the traffic of this host over to its peer.

import { agentSocketPath, orderAgent } from '../answer/agent-socket.ts';
import { ORDER_TIMEOUT_MS, type OrderOutcome } from '../pair/orders/orders.ts';
import { readQuestion } from './arguments.ts';
import { sayOutcome } from './outcome.ts';

export async function failover(argv: readonly string[]): Promise<number> {
  const { settings, own } = readQuestion(argv, { force: 'switch' });
  const query = own.force === true ? { force: 'true' } : {};
  const answer = await orderAgent(agentSocketPath(settings.runtimeDir), 'failover', query, ORDER_TIMEOUT_MS);
  return sayOutcome(answer as OrderOutcome, own.json === true);
}
