// Whether a Service asks for an address of the pools, and for which. Pure.

import { type AddressRequest, addressRequest } from '../addresses/addresses.ts';
import type { Service } from '../kubernetes/objects.ts';
import { readAnnotations } from '../translate/annotations/annotations.ts';
import { getsAddresses } from '../translate/service/service-vips.ts';
import type { TranslateSettings } from '../translate/translate-settings.ts';

/** What a request depends on besides its Service. */
export interface PoolsView {
  /** There is a pool. */
  readonly isAny: boolean;
  /** Claims of other Services than those of manifests are in the cluster, where hosts without the manifest see them. */
  readonly isOfCluster: boolean;
  /** The Service is one of a manifest, which may have the UID of the cluster that it was copied from. */
  readonly isOfFolder: (key: string) => boolean;
  /** Whether a pool has the address. */
  readonly owns: (address: string) => boolean;
  /** The Service has an address of a pool that is there, or was. */
  readonly hasAddress: (key: string) => boolean;
}

/** undefined for a Service that is not ours, or that has the addresses that it names itself. */
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
  const request = addressRequest(service, values, isLocal);
  const { given, statusIPs } = request;
  const isOutside = given.length > 0 && !given.some(({ address }) => pools.owns(address));
  if (!isLocal) {
    // What it has named and had before there was a pool is not taken from it by the first one.
    const hadBefore = given.every((one) => statusIPs.some(({ address }) => address === one.address));
    return isOutside && hadBefore && !pools.hasAddress(service.key) ? undefined : request;
  }
  // A manifest's author is the host's own operator: an address outside the pools is meant.
  if (isOutside) return undefined;
  return pools.isOfCluster && !pools.hasAddress(service.key) ? undefined : request;
}
