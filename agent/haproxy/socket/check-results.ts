// Reads the results of health checks from `show servers state BACKEND`. Pure.

import { parseServersState } from './servers-state.ts';

export interface CheckResult {
  /** False also before the first check: HAProxy treats the server as up until then. */
  readonly isDown: boolean;
  /** What the last check found, if the server is down; otherwise ''. */
  readonly cause: string;
}

// HCHK_STATUS_* (include/haproxy/check-t.h), the same from 2.6 to 3.4, as `show stat` abbreviates them.
const CAUSES: Readonly<Record<number, string>> = {
  4: 'too many errors in the traffic (HANA)',
  5: 'HAProxy had no free socket (SOCKERR)',
  7: 'the connection timed out (L4TOUT)',
  8: 'the connection was refused or failed (L4CON)',
  10: 'the TLS handshake timed out (L6TOUT)',
  11: 'the TLS handshake failed (L6RSP)',
  12: 'the response timed out (L7TOUT)',
  13: 'the response is invalid or unexpected (L7RSP)',
  17: 'the response has an unexpected status (L7STS)',
};

/** By the server's name, without servers in maintenance and servers without a check. */
export function parseCheckResults(text: string): ReadonlyMap<string, CheckResult> {
  const results = new Map<string, CheckResult>();
  for (const { server, state, check, operational, checkStatus } of parseServersState(text)) {
    if (state === 'maint' || check === 'none') continue;
    const isDown = operational === 'down';
    const cause = isDown ? (CAUSES[checkStatus] ?? `check status ${checkStatus}`) : '';
    results.set(server, { isDown, cause });
  }
  return results;
}
