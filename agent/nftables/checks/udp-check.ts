// What follows from the answers to a member's probes by UDP: results in a row count as in HAProxy. Pure.

import type { HealthMonitor } from '../../model/load-balancer.ts';
import { REFUSED, type UdpAnswer } from './udp-probe.ts';

/** The state of a member. */
export interface UdpCheck {
  readonly isDown: boolean;
  /** Why the last check failed; '' if it did not. */
  readonly cause: string;
  /** How many results in a row speak against `isDown`. */
  readonly against: number;
  /** When a probe was refused last, in milliseconds of the clock; -Infinity if none was. */
  readonly refusedAt: number;
}

export interface Probed {
  readonly answer: UdpAnswer;
  /** When the probe ended, in milliseconds of the clock. */
  readonly at: number;
  /** Milliseconds since the member has refused a packet of a client; Infinity if it has not. */
  readonly sinceRefusalMs: number;
}

/** A kernel refuses a packet a second by ICMP, to one address: after one refusal, silence for so long means nothing. */
const MUTE_MS = 2_000;

export function firstCheck(isDown: boolean): UdpCheck {
  return { isDown, cause: '', against: 0, refusedAt: Number.NEGATIVE_INFINITY };
}

/** What of a monitor decides when a member is down. */
export type Thresholds = Pick<HealthMonitor, 'interval' | 'rise' | 'fall'>;

export function nextCheck(before: UdpCheck, probed: Probed, monitor: Thresholds): UdpCheck {
  const answer = judged(before, probed, monitor);
  if (answer === 'unknown') return before;
  const hasFailed = typeof answer === 'object';
  const refusedAt = probed.answer === REFUSED ? probed.at : before.refusedAt;
  const next = { ...before, cause: hasFailed ? answer.failure : '', refusedAt };
  if (hasFailed === before.isDown) return { ...next, against: 0 };
  const against = before.against + 1;
  if (against >= (hasFailed ? monitor.fall : monitor.rise)) return { ...next, isDown: hasFailed, against: 0 };
  return { ...next, cause: before.cause, against };
}

/** While clients send to a member, it seldom is the probe that is refused: their refusals count as well. */
function judged(
  { refusedAt }: UdpCheck,
  { answer, at, sinceRefusalMs }: Probed,
  { interval }: Thresholds,
): UdpAnswer {
  if (answer !== 'silence') return answer;
  if (sinceRefusalMs <= interval) return REFUSED;
  return Math.min(sinceRefusalMs, at - refusedAt) <= MUTE_MS ? 'unknown' : 'silence';
}
