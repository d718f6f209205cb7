// `headgate failover` hands this host's traffic over to its peer; `headgate maintenance on|off` locks this host, so
// that the peer gets the traffic, or unlocks it. The running agent carries out the order.

import { agentSocketPath, orderAgent } from '../answer/agent-socket.ts';
import { quote } from '../base/quote.ts';
import { ORDER_TIMEOUT_MS, type OrderOutcome } from '../pair/orders/orders.ts';
import { type Arguments, type Command, JSON_FLAG, NO_AGENT } from './command.ts';
import { print, usageError } from './command-line.ts';

export const failover: Command = {
  name: 'failover',
  purpose: 'hand the traffic over to the peer',
  details: [
    'Open connections continue on this host until they end. It is refused if the peer cannot take over.',
  ],
  flags: {
    force: { placeholder: '', doc: 'also to a peer that says that it cannot take over' },
    ...JSON_FLAG,
  },
  settings: 'place',
  exits: { 0: 'the peer has the traffic', 1: 'it does not', 3: NO_AGENT },
  examples: [
    { line: 'headgate failover', doc: 'without a failed connection' },
    { line: 'headgate failover --force', doc: 'also if connections are lost' },
  ],
  run: (given) => order(given, 'failover', given.own.force === true ? { force: 'true' } : {}),
};

export const maintenance: Command = {
  name: 'maintenance',
  purpose: 'lock this host, so that its peer gets the traffic, or unlock it',
  details: ['A locked host takes no traffic while its peer lives, also after a restart.'],
  arguments: [{ name: 'on|off' }],
  flags: JSON_FLAG,
  settings: 'place',
  exits: { 0: 'done', 1: 'not done', 3: NO_AGENT },
  examples: [
    { line: 'headgate maintenance on', doc: 'before work on this host' },
    { line: 'headgate maintenance off', doc: 'after it' },
  ],
  run: async (given) => {
    const [turn = ''] = given.positionals;
    if (turn !== 'on' && turn !== 'off')
      throw usageError(`Cannot turn maintenance ${quote(turn)}: the choices are "on" and "off"`);
    return order(given, 'maintenance', { turn });
  },
};

async function order(
  given: Arguments,
  name: string,
  query: Readonly<Record<string, string>>,
): Promise<number> {
  const path = agentSocketPath(given.settings.runtimeDir);
  const outcome = (await orderAgent(path, name, query, ORDER_TIMEOUT_MS)) as OrderOutcome;
  const { ok, active, tookMs, message } = outcome;
  print(given, outcome, [`${message}${tookMs > 0 ? ` after ${tookMs} ms` : ''}`, `Active: ${active}`]);
  return ok ? 0 : 1;
}
