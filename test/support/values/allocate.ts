// Allocates addresses without earlier state, as a starting host does.

import {
  type AddressClaim,
  Addresses,
  type AddressPool,
  type AddressRequest,
  type Assignment,
  type ClaimChange,
} from '../../../agent/addresses/addresses.ts';
import type { Problem } from '../../../agent/model/load-balancer.ts';

/** The allocation for these claims and requests, which does not depend on their order. */
export function allocate(input: {
  readonly pools: readonly AddressPool[];
  readonly claims: readonly AddressClaim[];
  readonly requests: readonly AddressRequest[];
  readonly releaseAfter: number;
  readonly now: number;
}): {
  readonly assignments: ReadonlyMap<string, Assignment>;
  readonly claimChanges: readonly ClaimChange[];
  readonly problems: readonly Problem[];
} {
  const addresses = new Addresses();
  const { pools, claims, releaseAfter, now } = input;
  const requests = input.requests.map((request) => [request.key, request] as const);
  const { claimChanges } = addresses.update(
    { pools, claims: { upserted: claims }, requests, releaseAfter, leading: true },
    now,
  );
  const assignments = new Map(
    requests.map(([key]) => [
      key,
      addresses.assignment(key) ?? { key, addresses: [], isComplete: false, problems: [] },
    ]),
  );
  const ofServices = [...assignments.values()].flatMap(({ problems }) => problems);
  return { assignments, claimChanges, problems: [...addresses.poolProblems(), ...ofServices] };
}
