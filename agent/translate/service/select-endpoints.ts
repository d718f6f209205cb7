// Selects the endpoints of a Service port that get traffic, by kube-proxy's rules (pkg/proxy/topology.go, KEP-1669):
// the ready ones, narrowed by zone hints; if none is ready, those that terminate but still serve. Pure.

import type { Endpoint, EndpointPort, EndpointSlice, ServicePort } from '../../kubernetes/objects.ts';
import type { Family } from '../../model/load-balancer.ts';

/** An endpoint with the port that its EndpointSlice has for the Service port. */
export interface Candidate {
  readonly endpoint: Endpoint;
  readonly port: number;
}

export interface Selection {
  /** These get new connections. */
  readonly use: readonly Candidate[];
  /** These terminate but still serve while others are ready: they keep their connections and get no new ones. */
  readonly drain: readonly Candidate[];
  /** The number of the others, for `why`. */
  readonly notReady: number;
}

/**
 * Matches slices by the name and protocol of the port, because target ports may differ between slices. The same address
 * and port in two slices, as when the slice controller moves an endpoint, counts once, in its best state.
 * `zone`: the zone of this host, '' if it has none.
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

/**
 * The slices with at most `most` endpoints together: ready ones first, then in order. What exceeds the bound of a namespace
 * is left out before it costs time and memory; the shares of the Services decide how much of the rest is served.
 */
export function firstEndpoints(slices: readonly EndpointSlice[], most: number): readonly EndpointSlice[] {
  const all = slices.flatMap(({ endpoints }) => endpoints);
  if (all.length <= most) return slices;
  const ready = all.filter((endpoint) => endpoint.ready);
  const others = all.filter((endpoint) => !endpoint.ready);
  const chosen = new Set([...ready, ...others].slice(0, most));
  return slices.map((slice) => ({
    ...slice,
    endpoints: slice.endpoints.filter((endpoint) => chosen.has(endpoint)),
  }));
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

/** Ready before serving before neither. */
function rank(endpoint: Endpoint): number {
  return endpoint.ready ? 2 : endpoint.serving ? 1 : 0;
}

/**
 * Hints apply only if every ready endpoint has one and at least one names this host's zone. Hints for nodes never apply,
 * because a load balancer outside the cluster is not one of its nodes.
 */
function narrowByZone(ready: readonly Candidate[], zone: string): readonly Candidate[] {
  if (zone === '' || !ready.every(({ endpoint }) => endpoint.forZones !== undefined)) return ready;
  const near = ready.filter(({ endpoint }) => endpoint.forZones?.includes(zone));
  return near.length > 0 ? near : ready;
}
