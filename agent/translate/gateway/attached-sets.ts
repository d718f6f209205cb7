// The ListenerSets that belong to a Gateway. Pure.

import type { Gateway, ListenerSet } from '../../kubernetes/gateway/gateway-objects.ts';
import type { Dependency } from '../../model/desired-state.ts';
import type { GatewayView } from './gateway-view.ts';
import { allowsNamespace } from './listeners.ts';

/** The ListenerSets that name the Gateway, and those of them that it allows. */
export interface AttachedSets {
  readonly all: readonly ListenerSet[];
  readonly allowed: readonly ListenerSet[];
}

/** `reads`: adds what is read. */
export function attachedSets(gateway: Gateway, view: GatewayView, reads: Set<Dependency>): AttachedSets {
  const all = [...view.listenerSetsOf(gateway.key)];
  const labelsOf = (name: string) => {
    reads.add(`namespace ${name}`);
    return view.namespaceLabels(name);
  };
  const allowed = all.filter(({ namespace }) =>
    allowsNamespace(gateway.allowedListeners, gateway.namespace, namespace, labelsOf),
  );
  return { all, allowed };
}
