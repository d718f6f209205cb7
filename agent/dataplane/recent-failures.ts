// What clients tried in the last minute and did not get, as an engine has counted it. Values only.

/** Of a pool, or of a listener with routes. */
export interface RecentFailures {
  /** In mode http requests, which fail with an answer of 5xx; otherwise connections. */
  readonly unit: 'connections' | 'requests';
  /** Since the last success if there is none any more. */
  readonly tried: number;
  readonly failed: number;
  /** `all`: nothing has succeeded since at least ten seconds; `none`: so few that clients hardly notice them. */
  readonly share: 'all' | 'some' | 'none';
  /** By the member's name: those with failures. Empty until the members are read, and for a listener with routes. */
  readonly members: ReadonlyMap<string, MemberFailures>;
}

export interface MemberFailures {
  /** `connections` that could not be opened, or that the member broke; `requests` that it answered with 5xx. */
  readonly unit: 'connections' | 'requests';
  readonly tried: number;
  readonly failed: number;
  /** Nothing has succeeded since at least ten seconds. */
  readonly isAll: boolean;
}

/** `50 of 50 connections failed in the last minute`. */
export function failuresInWords({
  unit,
  tried,
  failed,
}: Pick<MemberFailures, 'unit' | 'tried' | 'failed'>): string {
  const what = unit === 'connections' ? 'connections failed' : 'requests got an answer of 5xx';
  return `${failed} of ${tried} ${what} in the last minute`;
}
