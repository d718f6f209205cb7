// The one patch that brings a Service to its desired state: status and finalizer together, guarded by UID and
// resourceVersion. What other writers put into the status stays. Pure.
// The patch goes to the status subresource, which takes metadata too (as the cloud controllers do it), so that the agent
// needs no right to change a Service's spec.

import { sameValue } from '../../base/same-value.ts';
import { IP_ALLOCATED } from '../class-names.ts';
import type { Condition, CurrentService, Ingress } from '../current-service.ts';
import {
  type DesiredCondition,
  type DesiredStatus,
  EGRESS,
  HEALTHY,
  PORTS_ERROR,
  PROGRAMMED,
} from './service-status.ts';

/** Kubernetes' name (KEP-980); other load balancers use it too. */
export const FINALIZER = 'service.kubernetes.io/load-balancer-cleanup';
const OWN_CONDITIONS = [IP_ALLOCATED, PROGRAMMED, HEALTHY, EGRESS, PORTS_ERROR];

/** The desired state of the Service with this UID; another one of the same name is not written. */
export type DesiredService =
  /** Its address is not stored yet. If that takes long, its status reports it. */
  | { readonly kind: 'choosing'; readonly uid: string }
  /** The agent serves it: its status, and the finalizer. */
  | { readonly kind: 'serve'; readonly uid: string; readonly status: DesiredStatus }
  /** It is being deleted, or the agent serves it no more. `isTornDown`: the dataplane has confirmed that. */
  | { readonly kind: 'release'; readonly uid: string; readonly isTornDown: boolean };

/** A JSON merge patch. */
export interface ServicePatch {
  readonly metadata: {
    readonly uid: string;
    readonly resourceVersion: string;
    readonly finalizers?: readonly string[];
  };
  readonly status?: {
    readonly loadBalancer: { readonly ingress: readonly Ingress[] };
    readonly conditions: readonly Condition[];
  };
}

/** undefined if the Service is as desired. `now`: RFC 3339, whole seconds. */
export function servicePatch(
  current: CurrentService,
  desired: DesiredService,
  { now, addFinalizer }: { readonly now: string; readonly addFinalizer: boolean },
): ServicePatch | undefined {
  const finalizers = finalizersOf(current, desired, addFinalizer);
  const merged = statusOf(current, desired, now);
  const isSameMetadata = finalizers === current.finalizers;
  const isSame =
    sameValue(current.ingress, merged.ingress) && sameValue(current.conditions, merged.conditions);
  if (isSameMetadata && isSame) return undefined;
  const { uid, resourceVersion } = current;
  const { ingress, conditions } = merged;
  return {
    metadata: { uid, resourceVersion, ...(isSameMetadata ? {} : { finalizers }) },
    ...(isSame ? {} : { status: { loadBalancer: { ingress }, conditions } }),
  };
}

function statusOf(current: CurrentService, desired: DesiredService, now: string): MergedStatus {
  if (desired.kind === 'serve') return mergeStatus(current, desired.status, now);
  if (desired.kind === 'release') return clearedStatus(current);
  if (hasOwnCondition(current)) return current;
  const message = 'The agent is choosing an address';
  const condition = { type: IP_ALLOCATED, status: 'False', reason: 'Pending', message } as const;
  const merged = mergeStatus(current, { ingress: [], conditions: [condition], isSettled: false }, now);
  return { ingress: current.ingress, conditions: merged.conditions };
}

/** The same list if there is nothing to change. */
function finalizersOf(
  current: CurrentService,
  desired: DesiredService,
  addFinalizer: boolean,
): readonly string[] {
  const { finalizers, isDeleting } = current;
  const hasIt = finalizers.includes(FINALIZER);
  if (desired.kind !== 'release') {
    // The API refuses a new finalizer on an object that is being deleted.
    return hasIt || isDeleting || !addFinalizer ? finalizers : [...finalizers, FINALIZER];
  }
  // Without the agent's condition the finalizer is another load balancer's.
  return hasIt && hasOwnCondition(current) ? finalizers.filter((name) => name !== FINALIZER) : finalizers;
}

/** True if the agent has written this status: other load balancers use the same finalizer, but not this condition. */
function hasOwnCondition(service: Pick<CurrentService, 'conditions'>): boolean {
  return conditionOf(service, IP_ALLOCATED) !== undefined;
}

export function conditionOf(
  { conditions }: Pick<CurrentService, 'conditions'>,
  type: string,
): Condition | undefined {
  return conditions.find((each) => each.type === type);
}

type MergedStatus = Pick<CurrentService, 'ingress' | 'conditions'>;

/** The status with the desired part instead of the agent's old one. A condition that keeps its status keeps its time. */
export function mergeStatus(current: CurrentService, desired: DesiredStatus, now: string): MergedStatus {
  const published = new Map(current.ingress.map((each) => [each.ip, each]));
  const isLoadBalancer = current.type === 'LoadBalancer';
  const ingress = (isLoadBalancer ? desired.ingress : [])
    .filter(({ ip, onlyIfPublished }) => !onlyIfPublished || published.has(ip))
    .map(({ ip, ipMode, ports }) => ({ ip, ipMode, ports }));
  const before = new Map(current.conditions.map((each) => [each.type, each]));
  const own = desired.conditions.map((each) => mergeCondition(before.get(each.type), each, current, now));
  // In their old places, so that an unchanged list is equal.
  const left = new Map(own.map((each) => [each.type, each]));
  const conditions: Condition[] = [];
  for (const condition of current.conditions) {
    const mine = left.get(condition.type);
    if (mine !== undefined) conditions.push(mine);
    else if (!OWN_CONDITIONS.includes(condition.type)) conditions.push(condition);
    left.delete(condition.type);
  }
  return { ingress, conditions: [...conditions, ...left.values()] };
}

/** The status without the agent's part: its conditions, and the addresses that its condition IPAllocated names. */
export function clearedStatus(current: CurrentService): MergedStatus {
  const marker = conditionOf(current, IP_ALLOCATED);
  if (marker === undefined) return current;
  const addresses = allocatedAddresses(marker);
  return {
    ingress: current.ingress.filter(({ ip = '' }) => !addresses.includes(ip)),
    conditions: current.conditions.filter(({ type }) => !OWN_CONDITIONS.includes(type)),
  };
}

/** As addressInWords() writes it. */
const PUBLIC = /^\S+ \(public (.+)\)$/;

/** The addresses that the condition IPAllocated names, as the status shows them. */
export function allocatedAddresses(
  marker: Pick<Condition, 'status' | 'message'> | undefined,
): readonly string[] {
  if (marker?.status !== 'True') return [];
  const [addresses = ''] = marker.message.split(';', 1);
  return addresses.split(', ').map((words) => PUBLIC.exec(words)?.[1] ?? words);
}

function mergeCondition(
  before: Condition | undefined,
  { type, status, reason, message }: DesiredCondition,
  { generation }: CurrentService,
  now: string,
): Condition {
  return {
    ...(generation > 0 ? { observedGeneration: generation } : {}),
    type,
    status,
    reason,
    message,
    lastTransitionTime: before?.status === status ? before.lastTransitionTime : now,
  };
}
