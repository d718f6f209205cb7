// What clients tried in the last minute and did not get, as an engine has counted it. Values only.

/** The failures of a pool, or of a listener with routes. */
export interface RecentFailures {
  /** In mode http requests, which fail with an answer of 5xx; of the kernel flows, which fail without an answer; otherwise connections. */
  readonly unit: 'connections' | 'requests' | 'flows';
  /** Since the last success if there is none any more. */
  readonly tried: number;
  readonly failed: number;
  /** `all`: nothing has succeeded since at least ten seconds; `none`: so few that clients hardly notice them. */
  readonly share: 'all' | 'some' | 'none';
  /** By the member's name: those with failures. Empty until the members are read, and for a listener with routes. */
  readonly members: ReadonlyMap<string, MemberFailures>;
}

export interface MemberFailures {
  /** `connections` that could not be opened, or that the member broke; `requests` that it answered with 5xx; `flows` that it refused or did not answer. */
  readonly unit: RecentFailures['unit'];
  readonly tried: number;
  readonly failed: number;
  /** Nothing has succeeded since at least ten seconds. */
  readonly isAll: boolean;
}

const FAILED: Readonly<Record<RecentFailures['unit'], string>> = {
  connections: 'connections failed',
  requests: 'requests got an answer of 5xx',
  flows: 'new connections got no answer',
};

/** `50 of 50 connections failed in the last minute`. */
export function failuresInWords({
  unit,
  tried,
  failed,
}: Pick<MemberFailures, 'unit' | 'tried' | 'failed'>): string {
  return `${failed} of ${tried} ${FAILED[unit]} in the last minute`;
}
