// The whole haproxy.cfg as a list of strings, made in slices from cached sections.

import type { LoadBalancer } from '../../model.ts';
import { Slice } from '../../slice.ts';
import { renderGlobal, renderLoadBalancer, structureHash } from '../render.ts';
import type { RenderContext } from './render-context.ts';

export interface ConfigText {
  readonly chunks: readonly string[];
  /** Tells this file's structure from any other; stands in its description. */
  readonly structure: string;
}

/** The order of the file: by key, so that the same objects give the same bytes on every host. */
export function inFileOrder(loadBalancers: ReadonlyMap<string, LoadBalancer>): readonly LoadBalancer[] {
  return [...loadBalancers.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
}

/** `loadBalancers` in file order. Gives way to other work every few milliseconds. */
export async function configText(
  loadBalancers: readonly LoadBalancer[],
  context: RenderContext,
): Promise<ConfigText> {
  const slice = new Slice();
  const chunks: string[] = [''];
  let block: string[] = [];
  for (const loadBalancer of loadBalancers) {
    block.push(renderLoadBalancer(loadBalancer, context));
    if (slice.isOver || block.length >= 200) {
      chunks.push(block.join(''));
      block = [];
      if (slice.isOver) await slice.breathe();
    }
  }
  chunks.push(block.join(''));
  const structure = structureHash(context, loadBalancers);
  chunks[0] = renderGlobal(context, structure);
  return { chunks, structure };
}
