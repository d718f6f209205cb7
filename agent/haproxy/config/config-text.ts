// The whole haproxy.cfg as the list of its sections, made in slices from cached ones.

import { Slice } from '../../base/slice.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';
import { renderGlobal, renderLoadBalancer, structureHash } from './render.ts';
import type { RenderContext } from './render-context.ts';

export interface ConfigText {
  /** The bytes of the global part, then of each load balancer. */
  readonly chunks: readonly Buffer[];
  /** Tells this file's structure from any other; stands in its description. */
  readonly structure: string;
}

/** Milliseconds: a reload goes through all of it, and changes come meanwhile. */
const SLICE = 2;

/** The order of the file: by key, so that the same objects give the same bytes on every host. */
export function inFileOrder(loadBalancers: ReadonlyMap<string, LoadBalancer>): readonly LoadBalancer[] {
  return [...loadBalancers.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
}

/** `loadBalancers` in file order. Gives way to other work every few milliseconds. */
export async function configText(
  loadBalancers: readonly LoadBalancer[],
  context: RenderContext,
): Promise<ConfigText> {
  const slice = new Slice(SLICE);
  const sections: Buffer[] = [];
  for (const loadBalancer of loadBalancers) {
    sections.push(renderLoadBalancer(loadBalancer, context));
    if (slice.isOver) await slice.breathe();
  }
  await slice.breathe();
  const structure = structureHash(context, loadBalancers);
  return { chunks: [Buffer.from(renderGlobal(context, structure)), ...sections], structure };
}
