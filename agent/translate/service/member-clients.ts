// What NetworkPolicies leave of the members of a port and of its clients, with the setting `enforceNetworkPolicy`, and what they
// cannot decide, for the author of the Service. Pure.

import type { Service, ServicePort } from '../../kubernetes/objects.ts';
import type { Dependency } from '../../model/desired-state.ts';
import type { Family, Member, Problem } from '../../model/load-balancer.ts';
import type { TranslateSettings } from '../translate-settings.ts';
import { MAX_RANGES, type PoliciesView, policyClients, restricted, type SentTo } from './policy-clients.ts';
import type { Selection } from './select-endpoints.ts';

type AllowedCidrs = Readonly<Partial<Record<Family, readonly string[]>>>;

export interface MemberClients {
  readonly members: readonly Member[];
  /** By the families that were asked for. */
  readonly allowed: AllowedCidrs;
  readonly problems: readonly Problem[];
}

export interface MemberPort {
  readonly service: Pick<Service, 'key' | 'namespace'>;
  readonly port: Pick<ServicePort, 'protocol' | 'port'>;
  readonly members: readonly Member[];
  /** Endpoints behind members that are nodes. */
  readonly behind?: Selection | undefined;
  /** The clients that may connect without any policy; of each family that clients can have. */
  readonly allowed: AllowedCidrs;
}

interface Context {
  readonly cluster: PoliciesView;
  readonly settings: Pick<TranslateSettings, 'enforceNetworkPolicy'>;
  readonly reads: { add(dependency: Dependency): unknown };
}

const FAMILIES = ['v4', 'v6'] as const;

export function memberClients(place: MemberPort, { cluster, settings, reads }: Context): MemberClients {
  const { service, port, members, behind, allowed } = place;
  if (settings.enforceNetworkPolicy === 'off') return { members, allowed, problems: [] };
  const destinations = behind === undefined ? members : endpointsOf(behind);
  const families = FAMILIES.filter((family) => allowed[family] !== undefined);
  const question = { namespace: service.namespace, protocol: port.protocol, families };
  const found = policyClients(destinations, question, cluster, reads);
  const faults = [...found.faults];
  const [first] = found.unknown;
  if (first !== undefined) faults.push(unknownFault(first, found.unknown.size, behind !== undefined));
  // Nodes send to whatever pod they choose.
  const isClosed = behind !== undefined && first !== undefined;
  const left: Partial<Record<Family, readonly string[]>> = {};
  for (const family of families) {
    const before = allowed[family] ?? [];
    const now = isClosed ? [] : restricted(before, found.allowed?.[family], family);
    left[family] = now ?? [];
    if (now === undefined)
      faults.push(
        `they leave more than ${MAX_RANGES} ranges of clients, so that no client of IP${family} is let in`,
      );
    else if (before.length > 0 && now.length === 0 && !isClosed)
      faults.push(`they let in no address of IP${family}`);
  }
  return {
    members: behind === undefined ? members.filter((member) => !found.unknown.has(member)) : members,
    allowed: left,
    problems: faults.map((fault) => problemOf(service.key, port, fault)),
  };
}

function endpointsOf({ use, drain }: Selection): readonly SentTo[] {
  return [...use, ...drain].map(({ endpoint: { address, target }, port }) => ({ address, port, target }));
}

function unknownFault({ address, target }: SentTo, count: number, areBehindNodes: boolean): string {
  const more = count === 1 ? '' : ` (and ${count - 1} more)`;
  const end = areBehindNodes ? 'nodes may send to it, so that no client is let in' : 'it is no member';
  return `${target} with the address ${address} is not known yet${more}: ${end}`;
}

function problemOf(key: string, { protocol, port }: MemberPort['port'], fault: string): Problem {
  const message = `NetworkPolicies restrict ${protocol} port ${port}: ${fault}`;
  return { object: `Service ${key}`, reason: 'ClosedByPolicy', message, port: { protocol, port } };
}
