// Which pods of a Service open connections from its VIPs (annotation `egress`). An EndpointSlice alone is no proof, because its
// author may write any address: the Pod that it names must have the address, in the namespace of the Service. Pure.

import type { Access } from '../../certificates/last-good.ts';
import type { ObjectRef } from '../../kubernetes/cluster.ts';
import type { Endpoint, EndpointSlice, Pod, Service } from '../../kubernetes/objects.ts';
import type { Dependency } from '../../model/desired-state.ts';
import type { Egress, EgressPod, Family, OwnerKey, Problem, Vip } from '../../model/load-balancer.ts';

/** What is known of pods. */
export interface PodsView {
  pod(key: string): Pod | undefined;
  /** True if the object comes from a folder of manifests, whose author rules the host. */
  isOfManifest(object: ObjectRef): boolean;
}

export interface EgressFacts {
  readonly pods: PodsView;
  /** Whether the Pods of a namespace can be read. */
  readonly access: (namespace: string) => Access;
  /** Addresses that were proved before, while Pods cannot be read. */
  readonly known: ReadonlySet<string>;
  /** The Service has a port at this address. */
  readonly hasPortAt: (address: string) => boolean;
  /** When the Service counts as created. */
  readonly created: number;
  readonly isAmongHosts: boolean;
}

export interface FoundEgress {
  readonly egress: Egress | undefined;
  readonly problems: readonly Problem[];
  readonly reads: readonly Dependency[];
}

/** More endpoints of one Service are left out, so that no author of slices makes each change slow. */
const MAX_ENDPOINTS = 10_000;
const FAMILIES: readonly Family[] = ['v4', 'v6'];

/** For a Service with the annotation. */
export function egressOf(
  service: Pick<Service, 'key' | 'namespace'>,
  vips: readonly Vip[],
  slices: readonly EndpointSlice[],
  facts: EgressFacts,
): FoundEgress {
  const { key, namespace } = service;
  if (facts.isAmongHosts) {
    const why = 'answers would reach another host than the one that the connection left through';
    const message = `Cannot use "headgate.io/egress" with the setting "hosts": ${why}; it is for one host, or a pair`;
    return { egress: undefined, problems: [problem(key, 'InvalidAnnotation', message)], reads: [] };
  }
  const addresses = sourcesOf(vips, facts);
  const problems = withoutSource(key, vips, addresses);
  const reads = new Set<Dependency>();
  const pods = new Map<string, EgressPod>();
  const refused: string[] = [];
  let count = 0;
  const { isOfManifest } = facts.pods;
  for (const slice of slices) {
    const isTrusted = (['EndpointSlice', 'Endpoints'] as const).some((kind) =>
      isOfManifest.call(facts.pods, { kind, key: slice.key }),
    );
    const access: Access = isTrusted ? { kind: 'read' } : facts.access(namespace);
    if (!isTrusted) reads.add(`pods ${namespace}`);
    for (const { address, target } of slice.endpoints.slice(0, MAX_ENDPOINTS - count)) {
      if (addresses[slice.family] === undefined || pods.has(address)) continue;
      const judged = isTrusted ? '' : judge({ address, target }, namespace, access, facts, reads);
      if (judged === '') pods.set(address, { address, family: slice.family, target });
      else if (judged !== undefined) refused.push(`${address}: ${judged}`);
    }
    if (count + slice.endpoints.length > MAX_ENDPOINTS && count < MAX_ENDPOINTS)
      refused.push(
        `${slice.endpoints[MAX_ENDPOINTS - count]?.address}: the Service has more than ${MAX_ENDPOINTS} endpoints`,
      );
    count = Math.min(MAX_ENDPOINTS, count + slice.endpoints.length);
    if (access.kind === 'denied' && !problems.some(({ reason }) => reason === 'NotPermitted'))
      problems.push(
        problem(key, 'NotPermitted', `Cannot find out which pods the Service has: ${access.why}`),
      );
  }
  if (refused.length > 0) problems.push(refusedPods(key, refused));
  const sorted = [...pods.values()].sort((a, b) => (a.address < b.address ? -1 : 1));
  return { egress: { created: facts.created, addresses, pods: sorted }, problems, reads: [...reads] };
}

/** The first VIP of each family, if the Service has a port there. */
function sourcesOf(vips: readonly Vip[], { hasPortAt }: EgressFacts): Egress['addresses'] {
  const addresses: Partial<Record<Family, string>> = {};
  for (const family of FAMILIES) {
    // The network outside has no route to a cluster IP.
    const first = vips.find((vip) => vip.family === family && vip.source !== 'spec.clusterIPs');
    if (first !== undefined && hasPortAt(first.address)) addresses[family] = first.address;
  }
  return addresses;
}

function withoutSource(key: OwnerKey, vips: readonly Vip[], addresses: Egress['addresses']): Problem[] {
  if (vips.length === 0 || FAMILIES.some((family) => addresses[family] !== undefined)) return [];
  const message = `Connections of its pods keep their source: another Service has the ports at ${vips[0]?.address}`;
  return [problem(key, 'EgressNotServed', message)];
}

/** '' if the pod has the address; undefined while that is not known; otherwise why not, as the end of a sentence. */
function judge(
  { address, target }: Pick<Endpoint, 'address' | 'target'>,
  namespace: string,
  access: Access,
  facts: EgressFacts,
  reads: Set<Dependency>,
): string | undefined {
  const [kind, name = ''] = target.split('/', 2);
  if (kind !== 'Pod') return 'its targetRef names no Pod';
  const key = `${namespace}/${name}`;
  reads.add(`pod ${key}`);
  if (access.kind !== 'read') return facts.known.has(address) ? '' : undefined;
  const pod = facts.pods.pod(key);
  if (pod === undefined) return undefined;
  if (pod.hostNetwork) return `Pod "${name}" has the address of its Node`;
  if (pod.hasEnded) return `Pod "${name}" has ended`;
  return pod.addresses.includes(address) ? '' : `Pod "${name}" has another address`;
}

function refusedPods(key: OwnerKey, refused: readonly string[]): Problem {
  const more = refused.length - 1;
  const others = more === 0 ? '' : ` (and ${more} more)`;
  const message = `Connections of some endpoints keep their source: ${refused[0]}${others}`;
  return problem(key, 'EgressPodRefused', message);
}

function problem(key: OwnerKey, reason: Problem['reason'], message: string): Problem {
  return { object: `Service ${key}`, reason, message };
}
