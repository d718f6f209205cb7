// EndpointSlices by the Service that they are of. Owns its indexes; touches nothing else.

import { compactList } from '../base/compact.ts';
import type { Dependency } from '../model/desired-state.ts';
import type { EndpointSlice } from './objects.ts';

export class SliceIndex {
  /** Service key → its slices, sorted by name; no empty entries. */
  readonly #slicesOf = new Map<string, readonly EndpointSlice[]>();
  /** The same for slices that are labelled headless. */
  readonly #headlessSlicesOf = new Map<string, readonly EndpointSlice[]>();

  /** Sorted by name; the same list as before unless a slice has changed; undefined if there is none. */
  of(service: string): readonly EndpointSlice[] | undefined {
    return this.#slicesOf.get(service);
  }

  ofHeadless(service: string): readonly EndpointSlice[] | undefined {
    return this.#headlessSlicesOf.get(service);
  }

  /** All slices, each with the key of its Service; with repetitions. */
  *addresses(): Generator<readonly [address: string, service: string]> {
    for (const index of [this.#slicesOf, this.#headlessSlicesOf])
      for (const [service, slices] of index)
        for (const { endpoints } of slices) for (const { address } of endpoints) yield [address, service];
  }

  /** `dirty` gets what a translation may have read. */
  add(slice: EndpointSlice, dirty: Set<Dependency>): void {
    const service = serviceOf(slice);
    if (service === undefined) return;
    const slicesOf = this.#indexOf(slice);
    const siblings = slicesOf.get(service) ?? [];
    const after = siblings.findIndex(({ name }) => name > slice.name);
    slicesOf.set(service, siblings.toSpliced(after < 0 ? siblings.length : after, 0, slice));
    dirty.add(`endpoints ${service}`);
  }

  delete(slice: EndpointSlice, dirty: Set<Dependency>): void {
    const service = serviceOf(slice);
    const slicesOf = this.#indexOf(slice);
    const siblings = service === undefined ? undefined : slicesOf.get(service);
    if (service === undefined || siblings === undefined) return;
    const left = compactList(siblings.filter((sibling) => sibling !== slice));
    if (left.length === 0) slicesOf.delete(service);
    else slicesOf.set(service, left);
    dirty.add(`endpoints ${service}`);
  }

  #indexOf({ headless }: EndpointSlice): Map<string, readonly EndpointSlice[]> {
    return headless ? this.#headlessSlicesOf : this.#slicesOf;
  }
}

function serviceOf({ namespace, serviceName }: EndpointSlice): string | undefined {
  return serviceName === '' ? undefined : `${namespace}/${serviceName}`;
}
