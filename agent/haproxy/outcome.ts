// Reports the outcome of applied plans: to the loop, in the metrics and in the log.

import { messageOf } from '../base/errors.ts';
import type { Outcome } from '../dataplane/forwarder.ts';
import type { WorkerOutcome } from './apply.ts';
import type { HaproxyOptions } from './options.ts';
import type { HaproxyPlan } from './plan.ts';
import type { AppliedOutcome } from './worker/apply-to-workers.ts';

export function reportOutcome(
  { acknowledged, refused, repaired, beyondRepair, lost, isReloading }: AppliedOutcome,
  { metrics, log }: Pick<HaproxyOptions, 'metrics' | 'log'>,
): void {
  for (const { kind } of acknowledged) metrics.commandsAcknowledged(kind);
  for (const { command, reply, key } of refused) {
    metrics.commandRefused(command.kind);
    const facts = { service: key, command: command.kind, reply };
    if (isReloading) log.debug('HAProxy refused a command during a reload', facts);
    else log.warn('HAProxy refused a command', facts);
  }
  for (const listener of repaired) {
    metrics.repaired('listener');
    log.info('Repaired a listener after a refused command', { listener });
  }
  for (const listener of isReloading ? [] : beyondRepair)
    log.warn('Reloading, because commands cannot bring a listener to its desired state', { listener });
  if (lost?.retry === 'never') log.error('A command was not sent', { error: messageOf(lost) });
}

/** In the terms of the dataplane contract. */
export function outcomeOf(plans: readonly HaproxyPlan[], outcome: WorkerOutcome): Outcome {
  const { lost } = outcome;
  const commanded = plans.filter(({ commands }) => commands.length > 0);
  return {
    acknowledged: new Set(lost === undefined ? commanded.map(({ key }) => key) : []),
    pending: new Set(plans.filter((plan) => isPending(plan, outcome)).map(({ key }) => key)),
    lost,
  };
}

/** Members still differ from the desired ones. A reload for another reason does not delay commands. */
function isPending({ key, commands, reload }: HaproxyPlan, outcome: WorkerOutcome): boolean {
  if (reload === 'listener-added' || reload === 'server-renumbered') return true;
  if (commands.length === 0) return false;
  const { lost, refused, beyondRepair } = outcome;
  return lost !== undefined || (beyondRepair.length > 0 && refused.some((refusal) => refusal.key === key));
}
