// References between objects: whether a ReferenceGrant permits one, and to which port of which Service a route may send. Pure.

import { quote } from '../../base/quote.ts';
import type { ReferenceGrant } from '../../kubernetes/gateway/gateway-objects.ts';
import { GATEWAY_GROUP } from '../../kubernetes/gateway/names.ts';
import type { GroupKind, ObjectReference } from '../../kubernetes/gateway/object-reference.ts';
import type { BackendReference } from '../../kubernetes/gateway/route-objects.ts';
import type { Service, ServicePort } from '../../kubernetes/objects.ts';
import type { Protocol } from '../../model/load-balancer.ts';
import type { RefusalReason } from '../../model/object-status.ts';
import type { Reads } from './gateway-view.ts';

/** The object that has a reference. */
export interface Referrer {
  /** `HTTPRoute`, `Gateway`, ... */
  readonly kind: string;
  readonly namespace: string;
}

/** A reference within a namespace needs no grant (GEP-709). */
export function isPermitted(
  from: Referrer,
  to: ObjectReference,
  grantsIn: (namespace: string) => readonly ReferenceGrant[],
): boolean {
  if (to.namespace === '' || to.namespace === from.namespace) return true;
  return grantsIn(to.namespace).some(
    (grant) =>
      grant.from.some(
        (each) =>
          each.group === GATEWAY_GROUP && each.kind === from.kind && each.namespace === from.namespace,
      ) &&
      grant.to.some(
        (each) =>
          each.group === to.group && each.kind === to.kind && (each.name === '' || each.name === to.name),
      ),
  );
}

export function notPermitted(from: Referrer, to: ObjectReference): RefusalReason {
  const message = `No ReferenceGrant in namespace "${to.namespace}" permits ${from.kind}s of namespace "${from.namespace}" to refer to ${to.kind} "${to.name}"`;
  return { reason: 'RefNotPermitted', message };
}

export function isKind({ group, kind }: GroupKind, ofGroup: string, wanted: string): boolean {
  return group === ofGroup && kind === wanted;
}

/** A port of a Service that a route may send to. */
export interface ResolvedBackend {
  readonly service: Service;
  readonly port: ServicePort;
}

/** A reason of refusal is that of the route's condition `ResolvedRefs`. */
export function resolveBackend(
  from: Referrer,
  reference: Omit<BackendReference, 'weight'>,
  protocol: Protocol,
  reads: Reads,
): ResolvedBackend | RefusalReason {
  const { group, kind, name, port: number } = reference;
  if (!isKind(reference, '', 'Service')) {
    const text = quote(group === '' ? kind : `${group}/${kind}`);
    return { reason: 'InvalidKind', message: `The backend ${quote(name)} is of kind ${text}, not Service` };
  }
  if (!isPermitted(from, reference, (namespace) => reads.grantsIn(namespace)))
    return notPermitted(from, reference);
  const key = `${reference.namespace || from.namespace}/${name}`;
  const missing = (why: string): RefusalReason => ({
    reason: 'BackendNotFound',
    message: `Cannot send to Service "${key}": ${why}`,
  });
  const service = reads.service(key);
  if (service === undefined) return missing('it does not exist');
  if (service.type === 'ExternalName') return missing('it is of type ExternalName, which has no endpoints');
  if (number === 0) return missing('the reference names no port');
  const ofNumber = service.ports.filter((each) => each.port === number);
  const port = ofNumber.find((each) => each.protocol === protocol);
  if (port !== undefined) return { service, port };
  if (ofNumber.length === 0) return missing(`it has no port ${number}`);
  const message = `Cannot send to Service "${key}": its port ${number} has protocol ${ofNumber[0]?.protocol}, not ${protocol}`;
  return { reason: 'UnsupportedProtocol', message };
}
