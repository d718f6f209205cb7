// Feeds the lower bound (reference/bound.ts) the same events as ack-agent.ts and measures it in the same way.

import { Bound } from '../reference/bound.ts';
import type { PlainService } from '../reference/plain-service.ts';
import { AckFeed, type AckOrder, serveAck } from './ack-feed.ts';
import { nameOf } from './objects.ts';
import { Scratch } from './scratch.ts';

interface Slice {
  readonly metadata: { readonly labels: Readonly<Record<string, string>> };
  readonly endpoints: readonly { readonly addresses: readonly string[] }[];
  readonly ports: readonly { readonly port: number }[];
}

await serveAck(async (order: AckOrder) => {
  const scratch = await Scratch.make();
  const feed = new AckFeed(order);
  const services = new Map<string, PlainService>();
  for (const spec of feed.specs) {
    const members = new Set(spec.members.map(({ address, port }) => `${address}:${port}`));
    services.set(nameOf(spec), { name: nameOf(spec), vip: spec.vip, port: spec.port, members });
  }
  const bound = await Bound.start(scratch, order.haproxy, [...services.values()]);
  return {
    sample: async () => {
      const text = feed.next();
      const since = performance.now();
      const { metadata, endpoints, ports } = JSON.parse(text) as Slice;
      const service = services.get(metadata.labels['kubernetes.io/service-name'] ?? '');
      if (service === undefined) throw new Error('The event belongs to no Service');
      const members = new Set(endpoints.map(({ addresses }) => `${addresses[0]}:${ports[0]?.port}`));
      const remove = await bound.change({ ...service, members });
      const took = performance.now() - since;
      await remove();
      return took;
    },
    stop: () => scratch.clean(),
  };
});
