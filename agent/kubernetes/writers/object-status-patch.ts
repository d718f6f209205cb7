// The one patch that brings the status of an object of the Gateway API, or of an Ingress, to what the agent has decided,
// guarded by UID and resourceVersion. What other controllers have in the status stays, in its place. Pure.

import { sameValue } from '../../base/same-value.ts';
import { isMapping } from '../../base/validate.ts';
import type {
  ListenerStatus,
  ObjectStatus,
  ParentReference,
  ParentStatus,
  StatusCondition,
} from '../../model/object-status.ts';
import { GATEWAY_CONTROLLER } from '../class-names.ts';
import type { CurrentObject } from '../current-object.ts';
import { GATEWAY_GROUP } from '../gateway/names.ts';

type Json = Readonly<Record<string, unknown>>;

/** A JSON merge patch of the subresource `status`. */
export interface ObjectStatusPatch {
  readonly metadata: { readonly uid: string; readonly resourceVersion: string };
  readonly status: Json;
}

/** Conditions of the Gateway API: another condition, such as `example.org/Checked`, is another controller's. */
const OWN_CONDITIONS: ReadonlySet<string> = new Set([
  'Accepted',
  'Programmed',
  'ResolvedRefs',
  'Conflicted',
  'OverlappingTLSConfig',
  'InsecureFrontendValidationMode',
  'SupportedVersion',
  'PartiallyInvalid',
]);

/** undefined if the status is as desired. `now`: RFC 3339, whole seconds. */
export function objectStatusPatch(
  current: CurrentObject,
  desired: ObjectStatus,
  now: string,
): ObjectStatusPatch | undefined {
  // Another controller may have written its own addresses.
  const isWithdrawn = 'isWithdrawn' in desired;
  if (isWithdrawn && current.hasOwnAddresses !== true) return undefined;
  const { generation } = isWithdrawn ? current : desired;
  const before = JSON.parse(current.status) as Json;
  const status = Object.fromEntries(
    Object.entries(fieldsOf(before, desired, { generation, now })).filter(
      ([field, value]) => !sameValue(withoutUndefined(value), before[field] ?? emptyAs(value)),
    ),
  );
  if (Object.keys(status).length === 0) return undefined;
  const { uid, resourceVersion } = current;
  return { metadata: { uid, resourceVersion }, status };
}

interface Moment {
  readonly generation: number;
  readonly now: string;
}

/** The fields of the status that are the agent's. */
function fieldsOf(before: Json, desired: ObjectStatus, moment: Moment): Json {
  switch (desired.kind) {
    case 'GatewayClass':
      return {
        conditions: conditionsOf(before.conditions, desired.conditions, moment),
        supportedFeatures: desired.supportedFeatures.map((name) => ({ name })),
      };
    case 'Gateway':
      return {
        addresses: desired.addresses.map((value) => ({ type: 'IPAddress', value })),
        conditions: conditionsOf(before.conditions, desired.conditions, moment),
        listeners: listenersOf(before.listeners, desired.listeners, moment),
        attachedListenerSets: desired.attachedListenerSets,
      };
    case 'ListenerSet':
      return {
        conditions: conditionsOf(before.conditions, desired.conditions, moment),
        listeners: listenersOf(before.listeners, desired.listeners, moment),
      };
    case 'BackendTLSPolicy':
      return { ancestors: entriesOf(before.ancestors, 'ancestorRef', desired.ancestors, desired, moment) };
    case 'Ingress': {
      const ports = desired.ports.map((port) => ({ port, protocol: 'TCP' }));
      // In a merge patch an absent field stays.
      if (desired.addresses.length === 0 && !isEmpty(before.loadBalancer))
        return { loadBalancer: { ingress: null } };
      if (desired.isWithdrawn === true) return {};
      return { loadBalancer: loadBalancerOf(desired.addresses.map((ip) => ({ ip, ports }))) };
    }
    default:
      return { parents: entriesOf(before.parents, 'parentRef', desired.parents, desired, moment) };
  }
}

function isEmpty(loadBalancer: unknown): boolean {
  return !isMapping(loadBalancer) || mappings(loadBalancer.ingress).length === 0;
}

/** An Ingress without an address has an empty status. */
function loadBalancerOf(ingress: readonly Json[]): Json {
  return ingress.length === 0 ? {} : { ingress };
}

/** What the API server leaves out of an answer equals an empty value. */
function emptyAs(value: unknown): unknown {
  if (Array.isArray(value)) return [];
  return value === 0 ? 0 : isMapping(value) ? {} : undefined;
}

/** The agent's conditions in their old places, then the new ones; one that keeps its status keeps its time. */
function conditionsOf(
  before: unknown,
  desired: readonly StatusCondition[],
  { generation, now }: Moment,
): readonly Json[] {
  const left = new Map(desired.map((each) => [each.type, each]));
  const old = mappings(before);
  const written = (condition: StatusCondition, last: Json | undefined): Json => ({
    type: condition.type,
    status: condition.status,
    reason: condition.reason,
    message: condition.message,
    lastTransitionTime: last?.status === condition.status ? last.lastTransitionTime : now,
    ...(generation > 0 ? { observedGeneration: generation } : {}),
  });
  const kept: Json[] = [];
  for (const condition of old) {
    const own = left.get(String(condition.type));
    if (own !== undefined) kept.push(written(own, condition));
    else if (!OWN_CONDITIONS.has(String(condition.type))) kept.push(condition);
    left.delete(String(condition.type));
  }
  return [...kept, ...[...left.values()].map((condition) => written(condition, undefined))];
}

/** In the order of the specification. */
function listenersOf(before: unknown, desired: readonly ListenerStatus[], moment: Moment): readonly Json[] {
  const old = new Map(mappings(before).map((each) => [each.name, each]));
  return desired.map(({ name, supportedKinds, attachedRoutes, conditions }) => ({
    name,
    supportedKinds: supportedKinds.map(({ group, kind }) => ({ group, kind })),
    attachedRoutes,
    conditions: conditionsOf(old.get(name)?.conditions, conditions, moment),
  }));
}

/** The entries of other controllers stay where they are; those of this agent that are not desired go. */
function entriesOf(
  before: unknown,
  field: 'parentRef' | 'ancestorRef',
  desired: readonly ParentStatus[],
  { namespace }: ObjectStatus,
  moment: Moment,
): readonly Json[] {
  const left = new Map(desired.map((each) => [refText(each.ref, namespace), each]));
  const written = ({ ref, conditions }: ParentStatus, last: unknown): Json => ({
    [field]: ref,
    controllerName: GATEWAY_CONTROLLER,
    conditions: conditionsOf(last, conditions, moment),
  });
  const kept: Json[] = [];
  for (const entry of mappings(before)) {
    if (entry.controllerName !== GATEWAY_CONTROLLER) {
      kept.push(entry);
      continue;
    }
    const ref = isMapping(entry[field]) ? refText(entry[field] as unknown as ParentReference, namespace) : '';
    const own = left.get(ref);
    if (own !== undefined) kept.push(written(own, entry.conditions));
    left.delete(ref);
  }
  return [...kept, ...[...left.values()].map((entry) => written(entry, undefined))];
}

/** With the defaults of the API, which one of two equal references may leave out. */
function refText(ref: ParentReference, own: string): string {
  const { group = GATEWAY_GROUP, kind = 'Gateway', namespace, name, sectionName = '', port = 0 } = ref;
  return [group, kind, namespace || own, name, sectionName, port].join(' ');
}

/** Skips wrong items, so that a wrong answer is no exception. */
function mappings(json: unknown): readonly Json[] {
  return Array.isArray(json) ? json.filter(isMapping) : [];
}

/** As JSON has it. */
function withoutUndefined(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}
