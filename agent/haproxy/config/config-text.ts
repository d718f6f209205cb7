// The whole haproxy.cfg as the list of its sections, which are cached; joined in slices.

import { Slice } from '../../base/slice.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';
import { renderGlobal, renderLoadBalancer, renderSpares, structureHash } from './render.ts';
import type { RenderContext } from './render-context.ts';

export interface ConfigText {
  /** The bytes of the global section, then of each load balancer, then of spare backends. */
  readonly chunks: readonly Buffer[];
  /** The hash of the file's structure, which its description contains. */
  readonly structure: string;
}

/** Changes that arrive during a reload wait this long at most. */
const SLICE_MS = 2;

/** Sorted by key, so that the same objects give the same bytes on every host. */
export function inFileOrder(loadBalancers: ReadonlyMap<string, LoadBalancer>): readonly LoadBalancer[] {
  return [...loadBalancers.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
}

/** `loadBalancers` in file order. Yields to other work between slices. */
export async function configText(
  loadBalancers: readonly LoadBalancer[],
  context: RenderContext,
): Promise<ConfigText> {
  const slice = new Slice(SLICE_MS);
  const sections: Buffer[] = [];
  for (const loadBalancer of loadBalancers) {
    sections.push(renderLoadBalancer(loadBalancer, context));
    if (slice.isOver) await slice.breathe();
  }
  await slice.breathe();
  const structure = structureHash(context, loadBalancers);
  const global = Buffer.from(renderGlobal(context, structure));
  return { chunks: [global, ...sections, renderSpares(loadBalancers, context)], structure };
}
