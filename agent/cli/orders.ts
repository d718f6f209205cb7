// `headgate failover` hands this host's traffic over to its peer; `headgate maintenance on|off` locks this host, so
// that the peer gets the traffic, or unlocks it. The running agent carries out the order.

import { agentSocketPath, orderAgent } from '../answer/agent-socket.ts';
import { ORDER_TIMEOUT_MS, type OrderOutcome } from '../pair/orders/orders.ts';
import { type Arguments, print, readArguments, usageError } from './command-line.ts';

export function failover(argv: readonly string[]): Promise<number> {
  const given = readArguments(argv, { force: 'switch' });
  return order(given, 'failover', given.own.force === true ? { force: 'true' } : {});
}

export async function maintenance(argv: readonly string[]): Promise<number> {
  const given = readArguments(argv, {}, ['on|off']);
  const [turn = ''] = given.positionals;
  if (turn !== 'on' && turn !== 'off')
    throw usageError(`Cannot turn maintenance ${JSON.stringify(turn)}: the choices are "on" and "off"`);
  return order(given, 'maintenance', { turn });
}

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
