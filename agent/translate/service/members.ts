// Members of a pool, from endpoints or from nodes: name, id and address the same on every host, whatever the order
// in which the objects came. Pure.

import { hash } from 'node:crypto';
import type { Node, Service, ServicePort } from '../../kubernetes/objects.ts';
import type { Family, Member } from '../../model/load-balancer.ts';
import type { Candidate, Selection } from './select-endpoints.ts';

// HAProxy's consistent hash puts 16 points per unit of weight on its ring, 48 bytes each: 16 gives 256 points a
// member, enough for an even spread, and leaves room to halve a weight or to multiply it.
export const DEFAULT_WEIGHT = 16;

const EXCLUDE_LABEL = 'node.kubernetes.io/exclude-from-external-load-balancers';

export function membersFromEndpoints(selection: Selection): readonly Member[] {
  return withIds([
    ...selection.use.map((candidate) => endpointMember(candidate, 'ready')),
    ...selection.drain.map((candidate) => endpointMember(candidate, 'drain')),
  ]);
}

function endpointMember({ endpoint, port }: Candidate, state: Member['state']): UnnumberedMember {
  const { address } = endpoint;
  return {
    id: 0,
    name: memberName(address, port),
    address,
    port,
    weight: DEFAULT_WEIGHT,
    state,
    target: endpoint.target,
  };
}

/**
 * Every node that may take outside traffic, at the Service's nodePort. A node that is NotReady stays
 * (KEP-3458: a health check is for that); one that a NoExecute taint empties is none, one that is being deleted is
 * drained. With externalTrafficPolicy Local only nodes with endpoints in use are members, and those where all that is
 * left terminates are drained: their kube-proxy serves such endpoints to the end (KEP-1669). A node then weighs as much
 * as it has endpoints in use, which is what its kube-proxy answers in `X-Load-Balancing-Endpoint-Weight`: each
 * endpoint gets its share, however they lie on the nodes.
 */
export function membersFromNodes(
  nodes: readonly Node[],
  service: Service,
  port: ServicePort,
  family: Family,
  { use, drain }: Pick<Selection, 'use' | 'drain'>,
): readonly Member[] {
  const isLocal = service.externalTrafficPolicy === 'Local';
  const inUse = countByNode(use);
  const draining = countByNode(drain);
  const weightOf = shares(isLocal ? inUse : new Map());
  const members: UnnumberedMember[] = [];
  for (const node of nodes) {
    if (isExcluded(node) || node.noExecute) continue;
    const isDraining = isLocal && !inUse.has(node.name);
    if (isDraining && !draining.has(node.name)) continue;
    const address = node.internalIPs.find((ip) => ip.includes(':') === (family === 'v6'));
    if (address === undefined) continue;
    members.push({
      id: 0,
      name: memberName(address, port.nodePort),
      address,
      port: port.nodePort,
      weight: weightOf(node.name),
      state: node.deleting || isDraining ? 'drain' : 'ready',
      target: `Node/${node.name}`,
    });
  }
  return withIds(members);
}

function countByNode(candidates: readonly Candidate[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { endpoint } of candidates)
    counts.set(endpoint.nodeName, (counts.get(endpoint.nodeName) ?? 0) + 1);
  return counts;
}

/** HAProxy's greatest weight. */
const MOST_WEIGHT = 256;

/** In proportion to the counts: exact up to 16 endpoints on a node, beyond that to a 256th of the greatest. */
function shares(counts: ReadonlyMap<string, number>): (node: string) => number {
  const most = Math.max(...counts.values(), 1);
  const unit = Math.min(DEFAULT_WEIGHT, MOST_WEIGHT / most);
  return (node) => Math.max(1, Math.round((counts.get(node) ?? 1) * unit));
}

/** The label's value is a bool as the cloud provider library reads it: `false` includes, nonsense excludes. */
export function isExcluded(node: Node): boolean {
  const value = node.labels[EXCLUDE_LABEL];
  return value !== undefined && !['0', 'f', 'F', 'false', 'False', 'FALSE'].includes(value);
}

/**
 * Readable in HAProxy's logs and statistics; what stands after the last colon is the port. Joined, because a template
 * gives a text that V8 keeps in parts and as a whole.
 */
export function memberName(address: string, port: number): string {
  return [address, port].join(':');
}

/** Members that somebody has written down, without what follows from the rest. */
export function membersAgain(written: readonly Omit<Member, 'id' | 'name'>[]): readonly Member[] {
  return withIds(
    written.map(({ address, port, weight, state, target }) => ({
      id: 0,
      name: memberName(address, port),
      address,
      port,
      weight,
      state,
      target,
    })),
  );
}

/** Its id is yet to come, but has its place: an object that grows by a field takes half as much again. */
type UnnumberedMember = Omit<Member, 'id'> & { readonly id: 0 };

/** Sorted by name, one per name; ids are hashes, moved on by one where two of a pool would be the same. */
function withIds(members: readonly UnnumberedMember[]): readonly Member[] {
  const byName = new Map<string, UnnumberedMember>();
  for (const member of members) if (!byName.has(member.name)) byName.set(member.name, member);
  const taken = new Set<number>();
  return [...byName.values()]
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map((member) => {
      let id = stableId(member.name);
      while (taken.has(id)) id = ((id % MAX_ID) + 1) | 0;
      taken.add(id);
      return { ...member, id };
    });
}

const MAX_ID = 2 ** 31 - 1;

/** 1 to 2^31-1 from a text: the first bits of its SHA-256, so that both hosts and every restart agree. */
export function stableId(text: string): number {
  const id = (Number.parseInt(hash('sha256', text, 'hex').slice(0, 8), 16) % MAX_ID) + 1;
  // A whole number to V8, too, which otherwise keeps it in an object of its own beside each member.
  return id | 0;
}
