// Decides what lowers this host in the pair. A reason that can flap counts after it has lasted for a while, and until
// it has been gone for longer. An API server that does not answer is no reason. Pure.

import { type StandingReason, standingReasons } from '../../vips/announcer.ts';
import type { StandingSettings } from '../pair-settings.ts';

/** What the agent has found on this host; a text says what is wrong, '' that nothing is. */
export interface Signs {
  /** HAProxy does not answer on its socket. */
  readonly haproxy: string;
  /** HAProxy answers, but a listener accepts no connections. */
  readonly listeners: string;
  /** An operator has locked this host. */
  readonly maintenance: boolean;
  /** This host is handing over to its peer. */
  readonly failover: boolean;
  /** This host has not reached its desired state since the agent started. */
  readonly catchingUp: string;
}

export interface Lowering {
  readonly reason: StandingReason;
  readonly message: string;
}

export interface Standing {
  /** What lowers the host now, heaviest first. */
  readonly lowered: readonly Lowering[];
  /** When a reason appeared that does not count yet, or disappeared while it still counts, milliseconds. */
  readonly turning: Readonly<Partial<Record<StandingReason, number>>>;
}

export const fullStanding: Standing = { lowered: [], turning: {} };

const CAN_FLAP: ReadonlySet<StandingReason> = new Set(['haproxy', 'listeners']);

/** `now` in milliseconds of a monotonic clock. */
export function nextStanding(
  before: Standing,
  signs: Signs,
  now: number,
  { pairLowerAfter, pairRaiseAfter }: StandingSettings,
): Standing {
  const messages = messagesOf(signs);
  const lowered: Lowering[] = [];
  const turning: Partial<Record<StandingReason, number>> = {};
  for (const reason of standingReasons) {
    const message = messages[reason];
    const counted = before.lowered.find((one) => one.reason === reason);
    const isTurning = (message !== '') !== (counted !== undefined);
    const since = before.turning[reason] ?? now;
    const delayMs = counted === undefined ? pairLowerAfter : pairRaiseAfter;
    const hasTurned = isTurning && (!CAN_FLAP.has(reason) || now - since >= delayMs);
    if (isTurning && !hasTurned) turning[reason] = since;
    if (hasTurned ? counted !== undefined : counted === undefined) continue;
    lowered.push({ reason, message: message || (counted?.message ?? '') });
  }
  return { lowered, turning };
}

function messagesOf(signs: Signs): Readonly<Record<StandingReason, string>> {
  const { haproxy, listeners, maintenance, failover, catchingUp } = signs;
  return {
    haproxy,
    listeners,
    maintenance: maintenance ? 'This host is locked: headgate maintenance off unlocks it' : '',
    failover: failover ? 'This host has handed over to its peer' : '',
    'catching-up': catchingUp,
  };
}
