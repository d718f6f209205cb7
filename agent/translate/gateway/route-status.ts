// The status of a route as far as one Gateway and its ListenerSets are concerned: an entry for each reference. Pure.

import type { Route } from '../../kubernetes/gateway/route-objects.ts';
import { writtenReference } from '../../kubernetes/gateway/written-reference.ts';
import type { ParentStatus, RouteStatus } from '../../model/object-status.ts';
import type { RouteAttachment } from './attachment.ts';
import { condition, isTrue } from './conditions.ts';
import type { ResolvedRoute } from './resolved-route.ts';

export function routeStatus(
  route: Route,
  { parents }: RouteAttachment,
  resolved: ResolvedRoute,
): RouteStatus {
  const { kind, namespace, name, uid, generation } = route;
  const { notAccepted, partiallyInvalid, unresolved } = resolved;
  return {
    kind,
    namespace,
    name,
    uid,
    generation,
    parents: parents.map(({ reference, fault }): ParentStatus => {
      const isPartly = fault === undefined && partiallyInvalid !== undefined;
      return {
        ref: writtenReference(reference),
        conditions: [
          condition('Accepted', 'Accepted', 'The route is accepted', fault ?? notAccepted),
          condition('ResolvedRefs', 'ResolvedRefs', 'All references are resolved', unresolved),
          ...(isPartly ? [isTrue('PartiallyInvalid', 'UnsupportedValue', partiallyInvalid.message)] : []),
        ],
      };
    }),
  };
}
