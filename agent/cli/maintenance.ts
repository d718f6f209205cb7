// `headgate maintenance on|off`: locks this host, so that its peer has the traffic, or unlocks it.

import { agentSocketPath, orderAgent } from '../answer/agent-socket.ts';
import { HeadgateError } from '../base/errors.ts';
import { ORDER_TIMEOUT_MS, type OrderOutcome } from '../pair/orders/orders.ts';
import { readQuestion } from './arguments.ts';
import { sayOutcome } from './outcome.ts';

export async function maintenance(argv: readonly string[]): Promise<number> {
  const { settings, own, positionals } = readQuestion(argv, {}, ['on|off']);
  const [turn = ''] = positionals;
  if (turn !== 'on' && turn !== 'off') {
    const message = `Cannot turn maintenance ${JSON.stringify(turn)}: say "on" or "off"`;
    throw new HeadgateError('USAGE', message, { retry: 'never' });
  }
  const answer = await orderAgent(
    agentSocketPath(settings.runtimeDir),
    'maintenance',
    { turn },
    ORDER_TIMEOUT_MS,
  );
  return sayOutcome(answer as OrderOutcome, own.json === true);
}
