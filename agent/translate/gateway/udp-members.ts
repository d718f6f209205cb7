// The members of a UDPRoute's listener: the endpoints of all its Services in one pool, each with its part of its Service's
// weight. The kernel drops nothing by weight: the others get the part of a Service that does not exist. Clients are those that
// NetworkPolicies of all of them let in. Pure.

import type { Dependency, DesiredState } from '../../model/desired-state.ts';
import type { Family, Member, Problem } from '../../model/load-balancer.ts';
import type { PortAddress } from '../../model/port-owners.ts';
import { routeSlices, type SlicesView } from '../pool/route-slices.ts';
import { memberClients } from '../service/member-clients.ts';
import { usableMembers } from '../service/member-rules.ts';
import { membersFromEndpoints, namedMembers } from '../service/members.ts';
import type { PoliciesView } from '../service/policy-clients.ts';
import { selectEndpoints } from '../service/select-endpoints.ts';
import type { TranslateSettings } from '../translate-settings.ts';
import type { WeightedService } from './resolved-route.ts';

/** The greatest weight of a member, which the kernel's table and HAProxy share. */
const MAX_WEIGHT = 256;

interface Context {
  readonly cluster: SlicesView & PoliciesView;
  readonly settings: () => TranslateSettings;
  readonly desired: Pick<DesiredState, 'portOwners'>;
  readonly reads: Set<Dependency>;
}

export interface UdpMembers {
  readonly members: readonly Member[];
  /** Canonical CIDRs. */
  readonly allowed: readonly string[];
  readonly problems: readonly Problem[];
}

/** `allowed`: the clients that may connect without any NetworkPolicy. */
export function udpMembers(
  services: readonly WeightedService[],
  { family, allowed: before }: { readonly family: Family; readonly allowed: readonly string[] },
  { cluster, settings, desired, reads }: Context,
): UdpMembers {
  let allowed = before;
  const problems: Problem[] = [];
  const isListening = (place: PortAddress) => desired.portOwners.ownerOf(place) !== undefined;
  const groups = services.flatMap(({ backend, weight }) => {
    if (backend === undefined || weight === 0) return [];
    const { service, port } = backend;
    reads.add(`endpoints ${service.key}`);
    const zone = { zone: settings().zone, ignoreHints: false };
    const found = membersFromEndpoints(selectEndpoints(routeSlices(service, cluster), port, family, zone));
    const { usable, refused } = usableMembers(found, 'UDP', settings(), isListening);
    for (const { member, isVip } of refused) if (isVip) reads.add(`vip ${member.address}`);
    const place = { service, port, members: usable, allowed: { [family]: allowed } };
    const clients = memberClients(place, { cluster, settings: settings(), reads });
    allowed = clients.allowed[family] ?? [];
    problems.push(...clients.problems);
    const { members } = clients;
    const ready = members.filter(({ state }) => state === 'ready').length;
    return [{ members, share: weight / Math.max(ready, 1) }];
  });
  const greatest = Math.max(...groups.map(({ share }) => share), 0);
  const members = namedMembers(
    groups.flatMap(({ members, share }) => {
      const weight = Math.max(1, Math.round((share / greatest) * MAX_WEIGHT));
      return members.map((member) => ({ ...member, weight }));
    }),
  );
  return { members, allowed, problems };
}
