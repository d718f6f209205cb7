// The EndpointSlices of a Service that routes send to. Pure.

import type { EndpointSlice, Service } from '../../kubernetes/objects.ts';

export interface SlicesView {
  slices(service: string): readonly EndpointSlice[];
  headlessSlices(service: string): readonly EndpointSlice[];
}

/** Includes slices that are labelled headless; hand-written slices of a headless Service may lack the label. */
export function routeSlices({ key, headless }: Service, cluster: SlicesView): readonly EndpointSlice[] {
  const slices = cluster.slices(key);
  return headless ? [...slices, ...cluster.headlessSlices(key)] : slices;
}
