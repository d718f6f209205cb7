// Which endpoints of a Service port get traffic, by kube-proxy's rules (pkg/proxy/topology.go, KEP-1669):
// the ready ones, narrowed by zone hints; where none is ready, those that terminate but still serve.
// Pure: slices in, endpoints out.

import type { Endpoint, EndpointPort, EndpointSlice, ServicePort } from '../../kubernetes/objects.ts';
import type { Family } from '../../model/load-balancer.ts';

/** An endpoint with the port that its own slice gives for the Service port. */
export interface Candidate {
  readonly endpoint: Endpoint;
  readonly port: number;
}

export interface Selection {
  /** Get new connections. */
  readonly use: readonly Candidate[];
  /** Terminate but still serve while others are ready: keep their connections, get no new ones. */
  readonly drain: readonly Candidate[];
  /** Neither; only counted, for `why`. */
  readonly notReady: number;
}

/**
 * Joins by port name and protocol, because target ports may differ from slice to slice.
 * The same address and port in two slices (legal while the slice controller moves it) counts once, at its best.
 * `zone` is the host's own zone, '' where it has none.
 */
export function selectEndpoints(
  slices: readonly EndpointSlice[],
  servicePort: Pick<ServicePort, 'name' | 'protocol'>,
  family: Family,
  options: { readonly zone: string; readonly ignoreHints: boolean },
): Selection {
  const candidates = candidatesOf(slices, servicePort, family);
  const ready: Candidate[] = [];
  const terminating: Candidate[] = [];
  let notReady = 0;
  for (const candidate of candidates.values()) {
    if (candidate.endpoint.ready) ready.push(candidate);
    else if (candidate.endpoint.serving && candidate.endpoint.terminating) terminating.push(candidate);
    else notReady++;
  }
  if (ready.length === 0) return { use: terminating, drain: [], notReady };
  const use = options.ignoreHints ? ready : narrowByZone(ready, options.zone);
  return { use, drain: terminating, notReady };
}

function candidatesOf(
  slices: readonly EndpointSlice[],
  servicePort: Pick<ServicePort, 'name' | 'protocol'>,
  family: Family,
): ReadonlyMap<string, Candidate> {
  const found = new Map<string, Candidate>();
  for (const slice of slices) {
    if (slice.family !== family) continue;
    for (const { port } of slice.ports.filter((each) => isSamePort(each, servicePort))) {
      for (const endpoint of slice.endpoints) {
        const key = `${endpoint.address} ${port}`;
        const other = found.get(key);
        if (other === undefined || rank(endpoint) > rank(other.endpoint)) found.set(key, { endpoint, port });
      }
    }
  }
  return found;
}

function isSamePort(port: EndpointPort, servicePort: Pick<ServicePort, 'name' | 'protocol'>): boolean {
  return port.name === servicePort.name && port.protocol === servicePort.protocol;
}

/** Ready beats serving beats neither. */
function rank(endpoint: Endpoint): number {
  return endpoint.ready ? 2 : endpoint.serving ? 1 : 0;
}

/**
 * Hints count only when every ready endpoint has one and at least one names our zone.
 * Same-node hints never do: a load balancer off the cluster is no node of it.
 */
function narrowByZone(ready: readonly Candidate[], zone: string): readonly Candidate[] {
  if (zone === '' || !ready.every(({ endpoint }) => endpoint.forZones !== undefined)) return ready;
  const near = ready.filter(({ endpoint }) => endpoint.forZones?.includes(zone));
  return near.length > 0 ? near : ready;
}
