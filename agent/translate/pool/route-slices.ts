// The EndpointSlices of a Service that routes send to. Pure.

import type { EndpointSlice, Service } from '../../kubernetes/objects.ts';

export interface SlicesView {
  slices(service: string): readonly EndpointSlice[];
  headlessSlices(service: string): readonly EndpointSlice[];
}

/** Of a headless Service also those that say that they are of one: the cluster's own do, an author's need not. */
export function routeSlices({ key, headless }: Service, cluster: SlicesView): readonly EndpointSlice[] {
  const slices = cluster.slices(key);
  return headless ? [...slices, ...cluster.headlessSlices(key)] : slices;
}
