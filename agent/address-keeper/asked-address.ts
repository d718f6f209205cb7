// Decides whether a Service requests an address of the pools, and which one. Pure.

import { type AddressRequest, addressRequest } from '../addresses/request.ts';
import type { Service } from '../kubernetes/objects.ts';
import { readAnnotations } from '../translate/annotations/annotations.ts';
import { getsAddresses } from '../translate/service/service-vips.ts';
import type { TranslateSettings } from '../translate/translate-settings.ts';

/** What a request depends on besides its Service. */
export interface PoolsView {
  /** There is at least one pool. */
  readonly isAny: boolean;
  /** The claims of Services of the API are in the cluster. */
  readonly isOfCluster: boolean;
  /** The Service comes from a manifest; it may have a UID all the same, copied from a cluster. */
  readonly isOfFolder: (key: string) => boolean;
  /** A pool has the address. */
  readonly owns: (address: string) => boolean;
  /** The Service has an address of a present or former pool. */
  readonly hasAddress: (key: string) => boolean;
  /** The Service has a claim on this address, in use or held. */
  readonly hasClaimOn: (key: string, address: string) => boolean;
}

/**
 * undefined if the agent does not serve the Service, or if the Service has all its addresses without the pools. Each
 * address is judged for itself: an address outside the pools that a Service has stays, whatever pools there are.
 */
export function askedAddress(
  service: Service | undefined,
  settings: TranslateSettings,
  pools: PoolsView,
): AddressRequest | undefined {
  if (service === undefined || !getsAddresses(service, settings)) return undefined;
  if (!pools.isAny && !pools.hasAddress(service.key)) return undefined;
  const { values } = readAnnotations(
    service.annotations,
    `Service ${service.key}`,
    settings.annotationDefaults,
  );
  const isLocal = pools.isOfFolder(service.key);
  const isOwn = (address: string): boolean => {
    if (pools.owns(address)) return false;
    // The author of a manifest is the operator of the host: an address outside the pools is intended.
    return isLocal || (service.statusIPs.includes(address) && !pools.hasClaimOn(service.key, address));
  };
  const request = addressRequest(service, values, isLocal, isOwn);
  return isLocal && pools.isOfCluster && !pools.hasAddress(service.key) ? undefined : request;
}
