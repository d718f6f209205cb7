// The members of a pool, from endpoints or from nodes. Names, ids and order depend on addresses and ports only, so that
// both hosts of a pair, and every restart, have the same. Pure.
// Why: docs/design/decisions/0003-member-weights.md
// Why: docs/design/decisions/0006-node-weights.md

import { hash } from 'node:crypto';
import type { Node, Service } from '../../kubernetes/objects.ts';
import type { Family, Member } from '../../model/load-balancer.ts';
import { memberName } from '../../model/names.ts';
import type { Candidate, Selection } from './select-endpoints.ts';

/** HAProxy's consistent hash gets 256 points from it, an even spread, and it can be halved and multiplied. */
export const DEFAULT_WEIGHT = 16;
/** HAProxy's greatest weight. */
const MAX_WEIGHT = 256;

const EXCLUDE_LABEL = 'node.kubernetes.io/exclude-from-external-load-balancers';

export function membersFromEndpoints({ use, drain }: Selection): readonly Member[] {
  const member =
    (state: Member['state']) =>
    ({ endpoint: { address, target }, port }: Candidate): UnnamedMember => ({
      address,
      port,
      weight: DEFAULT_WEIGHT,
      state,
      target,
    });
  return namedMembers([...use.map(member('ready')), ...drain.map(member('drain'))]);
}

/**
 * Every node that accepts external traffic, at `nodePort`.
 * - A node that is NotReady stays (KEP-3458), one with a NoExecute taint is left out, one that is being deleted drains.
 * - With externalTrafficPolicy Local only nodes with endpoints in use are members, with a weight in proportion to their
 *   number, as kube-proxy reports it in `X-Load-Balancing-Endpoint-Weight`. Nodes whose endpoints all terminate drain,
 *   because their kube-proxy serves such endpoints to the end (KEP-1669).
 */
export function membersFromNodes(
  nodes: readonly Node[],
  service: Pick<Service, 'externalTrafficPolicy'>,
  nodePort: number,
  family: Family,
  { use, drain }: Pick<Selection, 'use' | 'drain'>,
): readonly Member[] {
  const isLocal = service.externalTrafficPolicy === 'Local';
  const inUse = countByNode(use);
  const draining = countByNode(drain);
  const weightOf = weightsOf(isLocal ? inUse : new Map());
  const members: UnnamedMember[] = [];
  for (const node of nodes) {
    if (isExcluded(node) || node.noExecute) continue;
    const isDraining = isLocal && !inUse.has(node.name);
    if (isDraining && !draining.has(node.name)) continue;
    const address = node.internalIPs.find((ip) => ip.includes(':') === (family === 'v6'));
    if (address === undefined) continue;
    const state = node.deleting || isDraining ? 'drain' : 'ready';
    const target = `Node/${node.name}`;
    members.push({ address, port: nodePort, weight: weightOf(node.name), state, target });
  }
  return namedMembers(members);
}

function countByNode(candidates: readonly Candidate[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { endpoint } of candidates)
    counts.set(endpoint.nodeName, (counts.get(endpoint.nodeName) ?? 0) + 1);
  return counts;
}

/** In proportion to the counts: exact for up to 16 endpoints on a node, above that rounded. */
function weightsOf(counts: ReadonlyMap<string, number>): (node: string) => number {
  const greatest = Math.max(...counts.values(), 1);
  const unit = Math.min(DEFAULT_WEIGHT, MAX_WEIGHT / greatest);
  return (node) => Math.max(1, Math.round((counts.get(node) ?? 1) * unit));
}

/** The label's value is a boolean as the cloud provider library reads it: an invalid value excludes the node. */
export function isExcluded(node: Node): boolean {
  const value = node.labels[EXCLUDE_LABEL];
  return value !== undefined && !['0', 'f', 'F', 'false', 'False', 'FALSE'].includes(value);
}

type UnnamedMember = Omit<Member, 'id' | 'name'>;

/** Adds names and ids: sorted by name, one member per name; an id that another member has moves up by one. */
export function namedMembers(members: readonly UnnamedMember[]): readonly Member[] {
  const byName = new Map<string, UnnamedMember>();
  for (const member of members) {
    const name = memberName(member.address, member.port);
    if (!byName.has(name)) byName.set(name, member);
  }
  const taken = new Set<number>();
  return [...byName]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, { address, port, weight, state, target }]) => {
      let id = stableId(name);
      while (taken.has(id)) id = ((id % MAX_ID) + 1) | 0;
      taken.add(id);
      return { id, name, address, port, weight, state, target };
    });
}

const MAX_ID = 2 ** 31 - 1;

/** 1 to 2^31-1, from the first bits of the text's SHA-256. `| 0` keeps it an integer for V8, without an object each. */
export function stableId(text: string): number {
  return ((Number.parseInt(hash('sha256', text, 'hex').slice(0, 8), 16) % MAX_ID) + 1) | 0;
}
