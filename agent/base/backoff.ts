// How long to wait before the next attempt: doubling from 0.8 s to 30 s, with jitter, so that many clients of an API
// server that comes back do not all come at once (client-go waits alike). Pure.

/** Milliseconds. */
const FIRST = 800;
const LONGEST = 30_000;
/** An API server that asks for more patience than this is not believed. */
const LONGEST_ASKED = 120_000;

/**
 * Milliseconds; `attempt` counts failures in a row from 1. `random` gives 0 to 1: the wait is between half of the
 * step and the whole of it.
 */
export function backoff(attempt: number, random: () => number): number {
  const step = Math.min(LONGEST, FIRST * 2 ** Math.min(attempt - 1, 16));
  return step * (0.5 + random() / 2);
}

/** What the header Retry-After asks for, in milliseconds (RFC 9110, 10.2.3); 0 where it is absent or no number. */
export function retryAfter(header: string | undefined): number {
  if (header === undefined || !/^\d{1,9}$/.test(header)) return 0;
  return Math.min(LONGEST_ASKED, Number(header) * 1000);
}
