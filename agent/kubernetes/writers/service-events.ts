// The Events of a Service: for a condition that has changed, and for a new problem. Pure: from before and after.

import type { Problem } from '../../model/load-balancer.ts';
import { IP_ALLOCATED } from '../class-names.ts';
import type { CurrentService } from '../current-service.ts';
import { allocatedAddresses, conditionOf } from './service-patch.ts';
import { PROGRAMMED } from './service-status.ts';

type Conditions = Pick<CurrentService, 'conditions'>;

export interface EventText {
  readonly type: 'Normal' | 'Warning';
  /** CamelCase. */
  readonly reason: string;
  /** The agent's action, CamelCase. */
  readonly action: string;
  readonly note: string;
}

/**
 * The Events of a written status: only what it changed, so that a restart of the agent repeats none. What makes a
 * condition false has its own Event as a problem.
 */
export function writtenEvents(before: Conditions, after: Conditions): readonly EventText[] {
  const events: EventText[] = [];
  const [old = '', now = ''] = [before, after].map((service) =>
    allocatedAddresses(conditionOf(service, IP_ALLOCATED)).join(', '),
  );
  if (now !== '' && now !== old)
    events.push(normal('Allocated', 'Allocate', `The Service has the addresses ${now}`));
  if (old !== '' && now === '')
    events.push(normal('Released', 'Allocate', `The Service no longer has the addresses ${old}`));
  const [was, is] = [before, after].map((service) => conditionOf(service, PROGRAMMED));
  const [wasServed, isServed] = [was, is].map((each) => each?.status === 'True');
  if (isServed && !wasServed)
    events.push(normal('Programmed', 'Program', 'All ports of the Service are served'));
  // A new Service gets its pods later than its status.
  if (isServed && wasServed && is?.reason !== was?.reason) {
    if (is?.reason === 'NoMembers')
      events.push({ type: 'Warning', reason: 'NoMembers', action: 'Program', note: is.message });
    else if (was?.reason === 'NoMembers')
      events.push(normal('Programmed', 'Program', 'All ports of the Service have a ready member'));
  }
  return events;
}

/** One for each new problem. */
export function problemEvents(before: readonly Problem[], after: readonly Problem[]): readonly EventText[] {
  const known = new Set(before.map(identityOf));
  return after
    .filter((problem) => !known.has(identityOf(problem)))
    .map(({ reason, message }) => ({ type: 'Warning', reason, action: actionOf(reason), note: message }));
}

function normal(reason: string, action: string, note: string): EventText {
  return { type: 'Normal', reason, action, note };
}

function identityOf({ reason, message }: Problem): string {
  return `${reason} ${message}`;
}

function actionOf(reason: string): string {
  if (/Address|Pool|Claim|Provisioner/.test(reason)) return 'Allocate';
  return /^(Invalid|Duplicate)/.test(reason) ? 'Translate' : 'Program';
}
