// The time in which both hosts serve VIPs that have moved, and when it is over. Pure.

export interface Window {
  /** This host's part in the last handover. */
  readonly part: 'gives' | 'takes';
  /** The VIPs that this host lends itself. */
  readonly lent: readonly string[];
  /** Milliseconds that never go back: when the last handover was prepared or done, and when all ends. */
  readonly since: number;
  readonly until: number;
  /** How often this host has looked since it heard the peer last: a time would count stalls of this host, too. */
  readonly silentLooks: number;
}

/** Milliseconds after a handover in which nothing ends yet: neighbours learn of it from a second announcement, too. */
const SETTLE = 3_000;
/** Milliseconds between two looks. */
export const LOOK = 500;
/** Milliseconds without a word of the peer after which it may be dead, and its clients shall know. */
const SILENCE = 10_000;

/** Whether it is time to look how many connections are left. */
export function isSettled({ since }: Window, now: number): boolean {
  return now >= since + SETTLE;
}

/** Why it is over, '' where it goes on. `left`: on the host that gave the VIPs; undefined or -1 where nobody knows. */
export function whyOver(window: Window, left: number | undefined, now: number): string {
  if (now >= window.until) return 'It has taken as long as it may';
  if (!isSettled(window, now)) return '';
  if (left === 0) return 'No connection is left';
  if (window.part === 'takes' && window.silentLooks * LOOK > SILENCE) return 'The peer is not heard any more';
  return '';
}
