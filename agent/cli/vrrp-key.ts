// `headgate vrrp-key`: takes a new key of advertisements into use. The running agent carries out the order.

import { agentSocketPath, orderAgent } from '../answer/agent-socket.ts';
import type { KeyOutcome } from '../pair/orders/key-order.ts';
import { type Command, JSON_FLAG, NO_AGENT } from './command.ts';
import { print } from './command-line.ts';

const ORDER_TIMEOUT_MS = 30_000;

export const vrrpKey: Command = {
  name: 'vrrp-key',
  purpose: 'take a new key of VRRP advertisements into use',
  details: [
    'Reads the file of the setting vrrpKey again, after it was replaced on a host. Both hosts accept the former key until both have the new one, so that the order and the time between the hosts do not matter.',
  ],
  flags: JSON_FLAG,
  settings: 'place',
  exits: { 0: 'both hosts use only this key', 1: 'not yet, with the reason', 3: NO_AGENT },
  examples: [{ line: 'headgate vrrp-key', doc: 'on each host, after its file was replaced' }],
  run: async (given) => {
    const path = agentSocketPath(given.settings.runtimeDir);
    const outcome = (await orderAgent(path, 'vrrp-key', {}, ORDER_TIMEOUT_MS)) as KeyOutcome;
    print(given, outcome, [outcome.message]);
    return outcome.ok ? 0 : 1;
  },
};
