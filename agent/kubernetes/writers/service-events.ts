// The Events of a Service: for a condition that has changed, and for a new problem. Pure: from before and after.

import type { Problem } from '../../model/load-balancer.ts';
import type { Condition, CurrentService } from '../current-service.ts';
import { allocatedAddresses } from './service-patch.ts';
import { IP_ALLOCATED, PROGRAMMED } from './service-status.ts';

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
export function writtenEvents(
  before: Pick<CurrentService, 'conditions'>,
  after: Pick<CurrentService, 'conditions'>,
): readonly EventText[] {
  const events: EventText[] = [];
  const [oldIp, newIp] = bothOf(IP_ALLOCATED, before, after);
  const [old, now] = [oldIp, newIp].map((condition) => allocatedAddresses(condition).join(', '));
  if (now !== '' && now !== old)
    events.push(normal('Allocated', 'Allocate', `The Service has the addresses ${now}`));
  if (old !== '' && now === '')
    events.push(normal('Released', 'Allocate', `The Service no longer has the addresses ${old}`));
  const [oldProgrammed, newProgrammed] = bothOf(PROGRAMMED, before, after);
  if (newProgrammed?.status === 'True' && oldProgrammed?.status !== 'True')
    events.push(normal('Programmed', 'Program', 'All ports of the Service are served'));
  return events;
}

/** Each problem that was not there before. */
export function problemEvents(before: readonly Problem[], after: readonly Problem[]): readonly EventText[] {
  const known = new Set(before.map(identityOf));
  return after
    .filter((problem) => !known.has(identityOf(problem)))
    .map(({ reason, message }) => ({ type: 'Warning', reason, action: actionOf(reason), note: message }));
}

function bothOf(
  type: string,
  before: Pick<CurrentService, 'conditions'>,
  after: Pick<CurrentService, 'conditions'>,
): readonly [Condition | undefined, Condition | undefined] {
  const of = ({ conditions }: typeof before) => conditions.find((each) => each.type === type);
  return [of(before), of(after)];
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
