// The status of a route as far as one Gateway and its ListenerSets are concerned: an entry for each reference. Pure.

import type { ParentReference as Reference, Route } from '../../kubernetes/gateway/route-objects.ts';
import type { ParentReference, ParentStatus, RouteStatus } from '../../model/object-status.ts';
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
        ref: asWritten(reference),
        conditions: [
          condition('Accepted', 'Accepted', 'The route is accepted', fault ?? notAccepted),
          condition('ResolvedRefs', 'ResolvedRefs', 'All references are resolved', unresolved),
          ...(isPartly ? [isTrue('PartiallyInvalid', 'UnsupportedValue', partiallyInvalid.message)] : []),
        ],
      };
    }),
  };
}

function asWritten({ group, kind, namespace, name, sectionName, port }: Reference): ParentReference {
  return {
    group,
    kind,
    ...(namespace === '' ? {} : { namespace }),
    name,
    ...(sectionName === '' ? {} : { sectionName }),
    ...(port === 0 ? {} : { port }),
  };
}
