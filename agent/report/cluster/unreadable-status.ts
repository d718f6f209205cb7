// The status of an object that cannot be read: not accepted, with the reason. If it could be read before, that version is served
// still, and the rest of its status is as it was. Pure.
// https://gateway-api.sigs.k8s.io/guides/implementers/#conditions

import { parseAddress } from '../../base/ip.ts';
import { isMapping } from '../../base/validate.ts';
import type { CurrentObject } from '../../kubernetes/current-object.ts';
import { GATEWAY_GROUP } from '../../kubernetes/gateway/names.ts';
import type {
  ObjectStatus,
  ParentReference,
  ParentStatus,
  StatusCondition,
  StatusKind,
} from '../../model/object-status.ts';
import { type StatusName, subjectOfName } from '../../model/object-statuses.ts';

/** The reason that the specification has for each kind: an Ingress has no conditions. */
function notAccepted(kind: StatusKind, message: string): StatusCondition {
  const reason = kind.endsWith('Route')
    ? 'UnsupportedValue'
    : kind === 'GatewayClass'
      ? 'Unsupported'
      : 'Invalid';
  return { type: 'Accepted', status: 'False', reason, message };
}

/** `status`: of the last version that could be read; `generation`: that of the object now. */
export function withUnreadable(status: ObjectStatus, generation: number, fault: string): ObjectStatus {
  const accepted = notAccepted(
    status.kind,
    `Cannot read generation ${generation}, the last one that could be read is served: ${fault}`,
  );
  switch (status.kind) {
    case 'Ingress':
      return { ...status, generation };
    case 'GatewayClass':
    case 'Gateway':
    case 'ListenerSet':
      return { ...status, generation, conditions: replaced(status.conditions, accepted) };
    case 'BackendTLSPolicy':
      return { ...status, generation, ancestors: status.ancestors.map((each) => refused(each, accepted)) };
    default:
      return { ...status, generation, parents: status.parents.map((each) => refused(each, accepted)) };
  }
}

function refused({ ref, conditions }: ParentStatus, accepted: StatusCondition): ParentStatus {
  return { ref, conditions: replaced(conditions, accepted) };
}

function replaced(conditions: readonly StatusCondition[], by: StatusCondition): readonly StatusCondition[] {
  return [by, ...conditions.filter(({ type }) => type !== by.type)];
}

/** What the object is attached to by a reference, as `Gateway default/edge`. */
export function parentName(
  { group, kind = 'Gateway', namespace, name }: ParentReference,
  ownNamespace: string,
): StatusName {
  if (group !== GATEWAY_GROUP) return `${kind}.${group} ${name}`;
  if (kind === 'GatewayClass') return `${kind} ${name}`;
  return `${kind} ${namespace ?? ownNamespace}/${name}`;
}

/**
 * The status of an object that this agent has never been able to read; undefined if it is attached to nothing of this agent.
 * `isOurs`: this agent gives the Gateway, the ListenerSet or the GatewayClass a status.
 */
export function unreadableStatus(
  object: StatusName,
  current: CurrentObject,
  fault: string,
  isOurs: (parent: StatusName) => boolean,
): ObjectStatus | undefined {
  const { kind, namespace, name } = subjectOfName(object);
  const { uid, generation, unreadableParents = [] } = current;
  const own = unreadableParents.filter((ref) => isOurs(parentName(ref, namespace)));
  if (own.length === 0) return undefined;
  const subject = { namespace, name, uid, generation };
  const accepted = notAccepted(kind, `Cannot read it: ${fault}`);
  const programmed: StatusCondition = { ...accepted, type: 'Programmed' };
  if (kind === 'Gateway')
    return {
      kind,
      ...subject,
      conditions: [accepted, programmed],
      programmedBy: [],
      addresses: addressesOf(current),
      listeners: [],
      attachedListenerSets: 0,
    };
  if (kind === 'ListenerSet')
    return { kind, ...subject, conditions: [accepted, programmed], programmedBy: [], listeners: [] };
  if (kind === 'GatewayClass' || kind === 'BackendTLSPolicy' || kind === 'Ingress') return undefined;
  return { kind, ...subject, parents: own.map((ref) => ({ ref, conditions: [accepted] })) };
}

/** They stay: the claims on them do, too. */
function addressesOf({ status }: CurrentObject): readonly string[] {
  const json: unknown = JSON.parse(status);
  const list = isMapping(json) && Array.isArray(json.addresses) ? json.addresses : [];
  return list.flatMap((each: unknown) => {
    const value = isMapping(each) && typeof each.value === 'string' ? each.value : '';
    return parseAddress(value)?.address ?? [];
  });
}
