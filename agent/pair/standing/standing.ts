// Decides how this host stands beside its peer: what lowers it. What can flap has to be bad for a while before it
// counts, and well for longer before it counts no more. Whether the API server answers is no part of this.
// Pure: from the standing before, what is seen now and the time to the standing after.

import { type StandingReason, standingReasons } from '../../vips/announcer.ts';

/** What is seen of this host; a text says what is wrong, '' that nothing is. */
export interface Signs {
  /** HAProxy does not answer on its socket. */
  readonly haproxy: string;
  /** HAProxy answers, but what it should listen on does not take connections. */
  readonly listeners: string;
  /** An operator has locked this host. */
  readonly maintenance: boolean;
  /** This host is handing over to its peer. */
  readonly failover: boolean;
  /** This host has not been at desired since the agent started. */
  readonly catchingUp: string;
}

export interface StandingSettings {
  /** Milliseconds that HAProxy or its listeners must be bad without a break. */
  readonly lowerAfter: number;
  /** Milliseconds that they must then be well without a break. */
  readonly raiseAfter: number;
}

export interface Lowering {
  readonly reason: StandingReason;
  readonly message: string;
}

export interface Standing {
  /** What lowers the host now, heaviest first. */
  readonly lowered: readonly Lowering[];
  /** Since when a reason has been bad while it does not count, or well while it counts, milliseconds. */
  readonly turning: Readonly<Partial<Record<StandingReason, number>>>;
}

export const fullStanding: Standing = { lowered: [], turning: {} };

const CAN_FLAP: ReadonlySet<StandingReason> = new Set(['haproxy', 'listeners']);

/** `now` in milliseconds that never go back. */
export function nextStanding(
  before: Standing,
  signs: Signs,
  now: number,
  { lowerAfter, raiseAfter }: StandingSettings,
): Standing {
  const messages = messagesOf(signs);
  const lowered: Lowering[] = [];
  const turning: Partial<Record<StandingReason, number>> = {};
  for (const reason of standingReasons) {
    const message = messages[reason];
    const counted = before.lowered.find((one) => one.reason === reason);
    const isTurning = (message !== '') !== (counted !== undefined);
    const since = before.turning[reason] ?? now;
    const patience = !CAN_FLAP.has(reason) ? 0 : counted === undefined ? lowerAfter : raiseAfter;
    const hasTurned = isTurning && now - since >= patience;
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
