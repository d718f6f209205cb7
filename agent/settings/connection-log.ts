// The settings of the connection log that contradict each other. Pure.

import { HeadgateError } from '../base/errors.ts';
import { formatLogTarget } from '../base/log-target.ts';
import type { Settings } from './table.ts';

/** '' if there is none. */
export function logTargetFault({
  connectionLogTarget: target,
  haproxySupervisor,
}: Pick<Settings, 'connectionLogTarget' | 'haproxySupervisor'>): string {
  if (target.kind !== 'file' || haproxySupervisor === 'agent') return '';
  const remedy = 'use "journald", a syslog server, or haproxySupervisor "agent"';
  return `connectionLogTarget: "${formatLogTarget(target)}" needs a writer, which only the agent starts: ${remedy}`;
}

/** Errors: SETTINGS_INVALID. */
export function checkLogTarget(settings: Settings): void {
  const fault = logTargetFault(settings);
  if (fault !== '')
    throw new HeadgateError('SETTINGS_INVALID', `Cannot use these settings:\n  ${fault}`, { retry: 'never' });
}
