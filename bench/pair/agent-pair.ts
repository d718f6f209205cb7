// A pair of hosts with Headgate, as a contender of the rows that compare pairs.

import { agentSocketPath, orderAgent } from '../../agent/answer/agent-socket.ts';
import { ORDER_TIMEOUT_MS, type OrderOutcome } from '../../agent/pair/orders/orders.ts';
import type { Bench } from '../support/row.ts';
import type { Scratch } from '../support/scratch.ts';
import type { PairContender } from './contender.ts';
import type { PairNetwork } from './network.ts';
import { TwoAgents } from './two-agents.ts';

/** Starts `count` Services of one VIP each. */
export async function startAgentPair(
  bench: Bench,
  scratch: Scratch,
  network: PairNetwork,
  count: number,
): Promise<PairContender> {
  const agents = await TwoAgents.start(bench, scratch, network, count);
  return {
    name: 'agent',
    settled: () => agents.settled(),
    handOver: async (active) => {
      const socket = agentSocketPath(agents.agent(active).runtime);
      const { ok, message } = (await orderAgent(socket, 'failover', {}, ORDER_TIMEOUT_MS)) as OrderOutcome;
      if (!ok) throw new Error(`The failover was not carried out: ${message}`);
    },
    restore: async () => undefined,
  };
}
