// The statuses of a Gateway and of all that is attached to it, as the specification has them
// (https://gateway-api.sigs.k8s.io/guides/implementers/#conditions). `Programmed` is left to what the dataplane proves, unless the
// objects themselves are wrong. Pure.

import type { BackendTlsPolicy, Gateway, ListenerSet } from '../../kubernetes/gateway/gateway-objects.ts';
import { GATEWAY_GROUP } from '../../kubernetes/gateway/names.ts';
import type { Listener, OwnerKey, Problem } from '../../model/load-balancer.ts';
import { shownAddress } from '../../model/load-balancer.ts';
import { serviceOfPool } from '../../model/names.ts';
import type {
  GatewayStatus,
  ListenerSetStatus,
  ListenerStatus,
  ObjectStatus,
  ParentReference,
  PolicyStatus,
  RefusalReason,
  StatusCondition,
  StatusSubject,
} from '../../model/object-status.ts';
import type { PoolUse } from '../../model/pool-uses.ts';
import { isConflicted, judgePolicy, wrongTarget } from '../pool/backend-tls.ts';
import type { AttachedSets } from './attached-sets.ts';
import { condition, isFalse, isTrue } from './conditions.ts';
import type { GatewayMemory } from './gateway-memory.ts';
import type { GatewayAddresses } from './gateway-vips.ts';
import type { FoundCertificate } from './listener-tls.ts';
import { type GatewayListener, isUsable, type ListenersContext } from './listeners.ts';
import { namesOf } from './model-listeners.ts';
import type { AttachedRoute, RoutesByListener } from './route-portions.ts';
import { type RoutePortion, statusesOf } from './route-portions.ts';

export interface StatusOptions {
  readonly owner: TranslatedGateway;
  readonly listeners: readonly GatewayListener[];
  readonly attached: AttachedRoutes;
  readonly model: readonly Listener[];
  readonly memory: GatewayMemory;
  readonly context: ListenersContext;
}

/** A Gateway and what belongs to it besides its listeners. */
export interface TranslatedGateway {
  readonly key: OwnerKey;
  readonly gateway: Gateway;
  readonly sets: AttachedSets;
  readonly addresses: GatewayAddresses;
  readonly memberCertificate: FoundCertificate;
}

export interface AttachedRoutes {
  readonly routes: readonly RoutePortion[];
  readonly places: RoutesByListener;
  /** The routes send to them. */
  readonly pools: readonly PoolUse[];
}

export interface Statuses {
  readonly statuses: readonly ObjectStatus[];
  /** The same for the Gateway's author, for Events and `why`. */
  readonly problems: readonly Problem[];
}

export function gatewayStatuses(options: StatusOptions): Statuses {
  const { owner, listeners, attached, memory } = options;
  const { gateway, sets } = owner;
  const ofSets = sets.all.map((set) => setStatus(set, options));
  const accepted = ofSets.filter(({ conditions }) => conditions.some(isAccepted)).length;
  const policies = policyStatuses(options);
  return {
    statuses: [
      ...memory.kept([gatewayStatus(accepted, options), ...ofSets, ...policies]),
      ...statusesOf(attached.routes),
    ],
    problems: [
      ...memberCertificateProblems(owner),
      ...ofSets.flatMap(setProblems),
      ...policies.flatMap(policyProblems),
      ...listeners.flatMap(({ spec, section, notAccepted, unresolved }) => {
        const fault = notAccepted ?? unresolved;
        if (fault === undefined) return [];
        const message = `Cannot serve all of listener "${section}" (port ${spec.port}): ${fault.message}`;
        return [{ object: `Gateway ${gateway.key}`, reason: 'InvalidListener' as const, message }];
      }),
    ],
  };
}

/** Its listeners have their own. */
function setProblems({ namespace, name, conditions }: ListenerSetStatus): readonly Problem[] {
  return conditions
    .filter(({ type, status }) => type === 'Accepted' && status === 'False')
    .map(({ message }) => ({
      object: `ListenerSet ${namespace}/${name}`,
      reason: 'InvalidListener' as const,
      message: `Cannot serve it: ${message}`,
    }));
}

function policyProblems({ namespace, name, ancestors }: PolicyStatus): readonly Problem[] {
  return ancestors
    .flatMap(({ conditions }) => conditions.filter(({ status }) => status === 'False'))
    .map(({ message }) => ({
      object: `BackendTLSPolicy ${namespace}/${name}`,
      reason: 'InvalidPolicy' as const,
      message: `Cannot follow it: ${message}`,
    }));
}

function memberCertificateProblems({
  gateway,
  memberCertificate: { fault },
}: TranslatedGateway): readonly Problem[] {
  if (fault === undefined) return [];
  const message = `Cannot follow spec.tls.backend.clientCertificateRef: ${fault.message}`;
  return [{ object: `Gateway ${gateway.key}`, reason: 'InvalidCertificate', message }];
}

const NO_PLACES: readonly AttachedRoute[] = [];

function isAccepted({ type, status }: StatusCondition): boolean {
  return type === 'Accepted' && status === 'True';
}

function subjectOf({
  namespace,
  name,
  uid,
  generation,
}: {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly generation: number;
}): StatusSubject {
  return { namespace, name, uid, generation };
}

function gatewayStatus(attachedListenerSets: number, options: StatusOptions): GatewayStatus {
  const { owner, listeners, model } = options;
  const { gateway, addresses } = owner;
  const own = listeners.filter(({ parent }) => parent === `gateway ${gateway.key}`);
  const usable = listeners.filter(isUsable);
  const invalid = own.filter((listener) => !isUsable(listener));
  const accepted = gatewayAccepted(addresses, invalid, usable.length);
  const isServed = accepted.status === 'True';
  const programmed = notProgrammed(isServed ? undefined : accepted, addresses.notProgrammed);
  return {
    kind: 'Gateway',
    ...subjectOf(gateway),
    conditions: [
      accepted,
      ...(programmed === undefined ? [] : [programmed]),
      gatewayReferences(listeners, owner),
      ...insecureFallback(gateway),
    ],
    programmedBy: programmed === undefined ? model.map(({ name }) => name) : [],
    addresses: addresses.vips.map(shownAddress).filter(Boolean),
    listeners: own.map((listener) => listenerStatus(listener, isServed, options)),
    attachedListenerSets,
  };
}

function gatewayAccepted(
  { notAccepted }: GatewayAddresses,
  invalid: readonly GatewayListener[],
  usable: number,
): StatusCondition {
  if (notAccepted !== undefined) return isFalse('Accepted', notAccepted.reason, notAccepted.message);
  if (invalid.length === 0) return isTrue('Accepted', 'Accepted', 'The Gateway is accepted');
  const names = invalid.map(({ section }) => section).join(', ');
  const message = `Listeners that are not served: ${names}`;
  return usable === 0
    ? isFalse('Accepted', 'ListenersNotValid', message)
    : isTrue('Accepted', 'ListenersNotValid', message);
}

function notProgrammed(
  notAccepted: StatusCondition | undefined,
  addresses: RefusalReason | undefined,
): StatusCondition | undefined {
  if (notAccepted !== undefined) return isFalse('Programmed', 'Invalid', notAccepted.message);
  return addresses && isFalse('Programmed', addresses.reason, addresses.message);
}

/** `ResolvedRefs`: of the certificate that members get, and a summary of the listeners. */
function gatewayReferences(
  listeners: readonly GatewayListener[],
  { memberCertificate: { fault } }: TranslatedGateway,
): StatusCondition {
  if (fault !== undefined) return isFalse('ResolvedRefs', fault.reason, fault.message);
  const unresolved = listeners.filter((listener) => listener.unresolved !== undefined);
  if (unresolved.length === 0) return isTrue('ResolvedRefs', 'ResolvedRefs', 'All references are resolved');
  const names = unresolved.map(({ section }) => section).join(', ');
  return isFalse(
    'ResolvedRefs',
    'ListenersNotResolved',
    `Listeners with references that are not resolved: ${names}`,
  );
}

function insecureFallback({ clientValidation }: Gateway): readonly StatusCondition[] {
  const { default: otherwise, perPort } = clientValidation;
  const isInsecure = [otherwise, ...perPort.map(({ validation }) => validation)].some(
    (each) => each?.mode === 'AllowInsecureFallback',
  );
  if (!isInsecure) return [];
  const message =
    'Clients are accepted whatever certificate they have, or without one (AllowInsecureFallback)';
  return [isTrue('InsecureFrontendValidationMode', 'ConfigurationChanged', message)];
}

/** `isServed`: the object that has the listener is accepted. */
function listenerStatus(
  listener: GatewayListener,
  isServed: boolean,
  { owner, model, attached }: StatusOptions,
): ListenerStatus {
  const { key, addresses } = owner;
  const { spec, supportedKinds, conflict, notAccepted, unresolved, overlaps } = listener;
  const accepted = condition('Accepted', 'Accepted', 'The listener is accepted', notAccepted);
  const names = namesOf(key, listener, model);
  const waiting = addresses.vips.length === 0 ? 'The Gateway has no address' : 'The Gateway is not accepted';
  const programmed = !isUsable(listener)
    ? isFalse('Programmed', conflict?.reason ?? 'Invalid', (notAccepted ?? unresolved)?.message ?? '')
    : isFalse('Programmed', 'Pending', waiting);
  const isProgrammable = isServed && isUsable(listener) && names.length > 0;
  return {
    name: spec.name,
    supportedKinds,
    attachedRoutes: (attached.places.get(listener) ?? NO_PLACES).filter(
      ({ resolved }) => resolved.notAccepted === undefined,
    ).length,
    conditions: [
      accepted,
      ...(isProgrammable ? [] : [programmed]),
      condition('ResolvedRefs', 'ResolvedRefs', 'All references are resolved', unresolved),
      conflict === undefined
        ? isFalse('Conflicted', 'NoConflicts', 'No other listener has the same port and hosts')
        : isTrue('Conflicted', conflict.reason, conflict.message),
      ...(overlaps ? [OVERLAPS] : []),
    ],
    programmedBy: isProgrammable ? names : [],
  };
}

const OVERLAPS = isTrue(
  'OverlappingTLSConfig',
  'OverlappingHostnames',
  'Another listener of the port has hosts of this one: a client may use one connection for both, and gets 421 if it does',
);

function setStatus(set: ListenerSet, options: StatusOptions): ListenerSetStatus {
  const { owner, listeners, model } = options;
  const { gateway, sets, addresses, key } = owner;
  const own = listeners.filter(({ parent }) => parent === `listenerset ${set.key}`);
  const usable = own.filter(isUsable);
  const fault = setFault(set, gateway, sets, own, usable, addresses);
  const accepted = condition('Accepted', 'Accepted', 'The ListenerSet is accepted', fault);
  const waiting = addresses.notProgrammed;
  const names = new Set(usable.flatMap((listener) => namesOf(key, listener, model)));
  return {
    kind: 'ListenerSet',
    ...subjectOf(set),
    conditions: [
      accepted,
      ...(fault === undefined ? [] : [isFalse('Programmed', fault.reason, fault.message)]),
      ...(fault === undefined && names.size === 0
        ? [isFalse('Programmed', 'ParentNotProgrammed', waiting?.message ?? 'The Gateway is not served')]
        : []),
    ],
    programmedBy: fault === undefined ? [...names] : [],
    listeners: own.map((listener) => listenerStatus(listener, fault === undefined, options)),
  };
}

function setFault(
  set: ListenerSet,
  gateway: Gateway,
  { allowed }: AttachedSets,
  own: readonly GatewayListener[],
  usable: readonly GatewayListener[],
  { notAccepted }: GatewayAddresses,
): RefusalReason | undefined {
  if (!allowed.includes(set)) {
    const message = `Gateway "${gateway.key}" allows no ListenerSets of namespace "${set.namespace}" (spec.allowedListeners)`;
    return { reason: 'NotAllowed', message };
  }
  if (notAccepted !== undefined)
    return { reason: 'ParentNotAccepted', message: `Gateway "${gateway.key}" is not accepted` };
  if (usable.length > 0) return undefined;
  const names = own.map(({ spec }) => spec.name).join(', ');
  return { reason: 'ListenersNotValid', message: `None of its listeners can be served: ${names}` };
}

/** The statuses of the policies of all Services that the routes send to; this Gateway is their ancestor. */
function policyStatuses(options: StatusOptions): readonly PolicyStatus[] {
  const { owner, attached, context } = options;
  const { gateway } = owner;
  const { pools } = attached;
  const { view, certificates, reads } = context;
  const services = new Set(pools.map(({ pool }) => serviceOfPool(pool).service));
  const found = new Map<BackendTlsPolicy, StatusCondition[]>();
  for (const key of services) {
    reads.add(`policies ${key}`);
    const policies = view.policiesOf(key);
    const service = policies.length === 0 ? undefined : view.service(key);
    if (service === undefined) continue;
    for (const policy of policies) {
      const { notAccepted, unresolved } = judgePolicy(policy, certificates, reads);
      const conflict = isConflicted(policy, service, policies)
        ? { reason: 'Conflicted', message: `An older BackendTLSPolicy targets Service "${key}", too` }
        : undefined;
      const fault = wrongTarget(policy, service) ?? conflict ?? notAccepted;
      const accepted = condition('Accepted', 'Accepted', 'The policy is accepted', fault);
      const isWorse = found.get(policy)?.some(({ status }) => status === 'False');
      if (isWorse) continue;
      found.set(policy, [
        accepted,
        condition('ResolvedRefs', 'ResolvedRefs', 'All references are resolved', unresolved),
      ]);
    }
  }
  const { namespace, name } = gateway;
  const ref: ParentReference = { group: GATEWAY_GROUP, kind: 'Gateway', namespace, name };
  return Array.from(found, ([policy, conditions]) => ({
    kind: 'BackendTLSPolicy',
    ...subjectOf(policy),
    ancestors: [{ ref, conditions }],
  }));
}
