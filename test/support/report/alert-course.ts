// The course of an alert around an outage, as Prometheus has stored it: when it was pending, when it fired, and whether it
// did so once and without a gap.

import { setTimeout as delay } from 'node:timers/promises';
import type { Prometheus } from './prometheus.ts';

/** Seconds between two scrapes, and two evaluations: a usual interval. */
export const INTERVAL_S = 15;

/** Milliseconds since the epoch. */
export interface Times {
  readonly begin: number;
  readonly end: number;
}

export interface Course {
  /** Seconds after the beginning of the outage; undefined: never. */
  readonly pending: number | undefined;
  readonly firing: number | undefined;
  /** Seconds after the end of the outage; negative: before it. */
  readonly resolved: number | undefined;
  /** How often it fired, over all its series. */
  readonly times: number;
}

/** `labels`: those that tell one alert from others of its rule, such as `service="web"`. */
export async function courseOf(
  prometheus: Prometheus,
  alert: string,
  labels: string,
  { begin, end }: Times,
): Promise<Course> {
  const of = (state: string): Promise<readonly (readonly number[])[]> =>
    prometheus.times(
      `ALERTS{alertname="Headgate${alert}",alertstate="${state}"${labels === '' ? '' : `,${labels}`}}`,
      { from: begin / 1_000 - INTERVAL_S, to: Date.now() / 1_000, step: INTERVAL_S },
    );
  const [pending, firing] = [(await of('pending')).flat(), await of('firing')];
  const all = firing.flat();
  const since = (seconds: readonly number[], from: number, which = Math.min): number | undefined =>
    seconds.length === 0 ? undefined : Math.round(which(...seconds) - from / 1_000);
  return {
    pending: since(pending.length === 0 ? all : pending, begin),
    firing: since(all, begin),
    resolved: all.length === 0 ? undefined : (since(all, end, Math.max) ?? 0) + INTERVAL_S,
    times: firing.reduce((sum, times) => sum + spansOf(times), 0),
  };
}

/** Resolves when no alert of these rules is left, pending or firing. Errors: one is, after that time. */
export async function untilEnded(
  prometheus: Prometheus,
  alerts: readonly string[],
  minutes: number,
): Promise<void> {
  const names = alerts.map((each) => `Headgate${each}`).join('|');
  for (const until = Date.now() + minutes * 60_000; ; await delay(5_000)) {
    if ((await prometheus.query(`ALERTS{alertname=~"${names}"}`)).length === 0) return;
    if (Date.now() > until) throw new Error(`Not ended within ${minutes} minutes: ${names}`);
  }
}

/** Unbroken runs of evaluations. */
function spansOf(times: readonly number[]): number {
  return times.filter((time, at) => at === 0 || time - (times[at - 1] ?? 0) > 1.5 * INTERVAL_S).length;
}

/** `2:15`; `–` for undefined. */
export function inMinutes(seconds: number | undefined): string {
  if (seconds === undefined) return '–';
  const sign = seconds < 0 ? '-' : '';
  const whole = Math.abs(seconds);
  return `${sign}${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}
