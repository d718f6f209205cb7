// The object in the API that an Event on a problem is about, from the object's name in the problem. Pure.

import type { Cluster } from '../../kubernetes/cluster.ts';
import type { CurrentObject } from '../../kubernetes/current-object.ts';
import type { KubernetesObject } from '../../kubernetes/objects.ts';
import { apiVersionOf, isStatusKind } from '../../kubernetes/status-kinds.ts';
import type { EventSubject } from '../../kubernetes/writers/events.ts';
import { keyOf, serviceOfPool } from '../../model/names.ts';
import { type StatusName, subjectOfName } from '../../model/object-statuses.ts';

export interface KnownObjects {
  readonly cluster: Pick<Cluster, 'isOfManifest' | 'service' | 'ingressClass'>;
  readonly currentObject: (name: StatusName) => CurrentObject | undefined;
}

/** `HTTPRoute default/api`, `Pool default/web`: that of its Service. undefined if the object is not the API's. */
export function eventSubject(object: string, known: KnownObjects): EventSubject | undefined {
  const {
    kind,
    namespace,
    name,
  }: { readonly kind: string; readonly namespace: string; readonly name: string } = subjectOfName(object);
  if (kind === 'Pool') {
    const { service } = serviceOfPool(keyOf({ kind, namespace, name }));
    return eventSubject(`Service ${service}`, known);
  }
  const of = identityOf(kind, namespace === '' ? name : `${namespace}/${name}`, object, known);
  if (of === undefined || of.uid === '' || known.cluster.isOfManifest(of)) return undefined;
  return { apiVersion: of.apiVersion, kind: of.kind, namespace, name, uid: of.uid };
}

interface Identity {
  readonly kind: KubernetesObject['kind'];
  readonly key: string;
  readonly apiVersion: string;
  readonly uid: string;
}

function identityOf(
  kind: string,
  key: string,
  object: string,
  { cluster, currentObject }: KnownObjects,
): Identity | undefined {
  if (isStatusKind(kind))
    return { kind, key, apiVersion: apiVersionOf(kind), uid: currentObject(object)?.uid ?? '' };
  if (kind === 'Service') {
    // The API has shown the identity of an object that cannot be read.
    const uid = cluster.service(key)?.uid ?? currentObject(object)?.uid ?? '';
    return { kind, key, apiVersion: 'v1', uid };
  }
  if (kind !== 'IngressClass') return undefined;
  return { kind, key, apiVersion: apiVersionOf('Ingress'), uid: cluster.ingressClass(key)?.uid ?? '' };
}
