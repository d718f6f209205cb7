// Says in the metrics and in the log what became of plans that were applied.

import { messageOf } from '../base/errors.ts';
import type { Outcome } from './apply.ts';
import type { HaproxyOptions } from './options.ts';

/** `isHandover`: the worker is being replaced, and may refuse everything. */
export function reportOutcome(
  { acknowledged, refused, repaired, beyondRepair, lost }: Outcome,
  isHandover: boolean,
  { metrics, log }: Pick<HaproxyOptions, 'metrics' | 'log'>,
): void {
  for (const { kind } of acknowledged) metrics.commandsAcknowledged(kind);
  for (const { command, reply, key } of refused) {
    metrics.commandRefused(command.kind);
    const facts = { service: key, command: command.kind, reply };
    if (isHandover) log.debug('HAProxy refused a command during a reload', facts);
    else log.warn('HAProxy refused a command', facts);
  }
  for (const listener of repaired) {
    metrics.repaired('listener');
    log.info('Repaired a listener after a refused command', { listener });
  }
  for (const listener of isHandover ? [] : beyondRepair)
    log.warn('Reloading: commands do not bring a listener to desired', { listener });
  if (lost?.retry === 'never') log.error('A command was not sent', { error: messageOf(lost) });
}
