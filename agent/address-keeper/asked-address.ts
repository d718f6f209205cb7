// Decides whether a Service, Gateway or IngressClass requests an address of the pools, and which one. Pure.

import type { Addresses } from '../addresses/addresses.ts';
import { type AddressNeeds, type AddressRequest, addressRequest } from '../addresses/request.ts';
import {
  gatewayNeeds,
  ingressClassNeeds,
  ownerOfRequester,
  type Requester,
  serviceNeeds,
} from '../addresses/requesters.ts';
import { familyOf } from '../base/ip.ts';
import type { Cluster } from '../kubernetes/cluster.ts';
import type { Ingress } from '../kubernetes/ingress/ingress-objects.ts';
import type { OwnerKey } from '../model/load-balancer.ts';
import { objectOf } from '../model/names.ts';
import { type AnnotationValues, readAnnotations } from '../translate/annotations/annotations.ts';
import { getsAddresses } from '../translate/service/service-vips.ts';
import type { TranslateSettings } from '../translate/translate-settings.ts';

/** What a request depends on besides its Service. */
export interface PoolsView {
  /** There is at least one pool. */
  readonly isAny: boolean;
  /** The claims of objects of the API are in the cluster. */
  readonly isOfCluster: boolean;
  /** The object comes from a manifest; it may have a UID all the same, copied from a cluster. */
  readonly isOfFolder: (object: Requester) => boolean;
  readonly ingressesOf: (className: string) => readonly Ingress[];
  /** undefined if they are not known, or no pool selects namespaces by label. */
  readonly namespaceLabels: (namespace: string) => AddressRequest['namespaceLabels'];
  /** See Addresses. */
  readonly localOf: (address: string) => string;
  /** A pool has the address. */
  readonly owns: (address: string) => boolean;
  /** The owner has an address of a present or former pool. */
  readonly hasAddress: (key: OwnerKey) => boolean;
  /** The owner has a claim on this address, in use or held. */
  readonly hasClaimOn: (key: OwnerKey, address: string) => boolean;
  /** The owner has an address of a pool of the family of this one. */
  readonly hasFamilyOf: (key: OwnerKey, address: string) => boolean;
}

export function poolsView(
  cluster: Cluster,
  addresses: Addresses,
  pools: Pick<PoolsView, 'isAny' | 'isOfCluster'>,
): PoolsView {
  return {
    ...pools,
    isOfFolder: (object) => cluster.isOfManifest(object),
    ingressesOf: (className) => cluster.ingressesOf(className),
    namespaceLabels: (namespace) =>
      addresses.selectsNamespaces ? cluster.namespaceLabels(namespace) : undefined,
    localOf: (address) => addresses.localOf(address),
    owns: (address) => addresses.poolOf(address) !== undefined,
    hasAddress: (key) => addresses.claimsOf(key).some(({ heldUntil }) => heldUntil === 0),
    hasFamilyOf: (key, address) =>
      addresses.claimsOf(key).some((claim) => claim.heldUntil === 0 && claim.family === familyOf(address)),
    hasClaimOn: (key, address) => addresses.claimsOf(key).some((claim) => claim.address === address),
  };
}

/**
 * undefined if the agent does not serve the object, or if the object has all its addresses without the pools. Each address
 * is judged for itself: an address outside the pools that the object has stays, whatever pools there are.
 */
export function askedAddress(
  object: Requester | undefined,
  settings: TranslateSettings,
  pools: PoolsView,
): AddressRequest | undefined {
  if (object === undefined) return undefined;
  const key = ownerOfRequester(object);
  if (object.kind === 'Service') {
    const isOfPools =
      pools.hasAddress(key) || object.statusIPs.some((address) => pools.owns(pools.localOf(address)));
    if (!getsAddresses(object, settings, isOfPools)) return undefined;
  }
  if (!pools.isAny && !pools.hasAddress(key)) return undefined;
  const { values } = readAnnotations(object.annotations, objectOf(key), settings.annotationDefaults);
  const written = needsOf(object, values, pools);
  // The status shows what clients use.
  const needs = { ...written, statusIPs: written.statusIPs.map(pools.localOf) };
  const isLocal = pools.isOfFolder(object);
  const isOwn = (address: string): boolean => {
    if (pools.owns(address)) return false;
    // The author of a manifest is the operator of the host: an address outside the pools is intended.
    // What the status shows beside a claim of the family may be a former public address.
    const isShown = needs.statusIPs.includes(address) && !pools.hasFamilyOf(key, address);
    return isLocal || (isShown && !pools.hasClaimOn(key, address));
  };
  const request = addressRequest(needs, values, isLocal, isOwn, pools.namespaceLabels(needs.namespace));
  return isLocal && pools.isOfCluster && !pools.hasAddress(key) ? undefined : request;
}

function needsOf(object: Requester, { loadBalancerIps }: AnnotationValues, pools: PoolsView): AddressNeeds {
  if (object.kind === 'Service') return serviceNeeds(object, loadBalancerIps);
  if (object.kind === 'Gateway') return gatewayNeeds(object);
  return ingressClassNeeds(object, loadBalancerIps, pools.ingressesOf(object.name));
}
