// The one patch that brings a Service to what we want of it: status and finalizer together, guarded by UID and
// resourceVersion. Pure.
// It goes to the status subresource, which takes metadata too (as the cloud controllers do it), so that the agent
// needs no right to change a Service's spec.

import type { Condition, CurrentService, Ingress } from '../current-service.ts';
import {
  clearedStatus,
  type DesiredStatus,
  IP_ALLOCATED,
  isMarkedOurs,
  isSameStatus,
  type MergedStatus,
  mergeStatus,
} from './service-status.ts';

/** Kubernetes' name (KEP-980); other load balancers use it too. */
export const FINALIZER = 'service.kubernetes.io/load-balancer-cleanup';

/** What is wanted of the Service with this UID; another one of the same name is left alone. */
export type DesiredService =
  /** Something outside is about to be done for it: the finalizer first. */
  | { readonly kind: 'finalizer'; readonly uid: string }
  /** It is ours: its status, and the finalizer. */
  | { readonly kind: 'serve'; readonly uid: string; readonly status: DesiredStatus }
  /** It is being deleted, or no longer ours. `isTornDown`: the dataplane has acknowledged that nothing serves it. */
  | { readonly kind: 'release'; readonly uid: string; readonly isTornDown: boolean };

export interface PatchOptions {
  /** RFC 3339, whole seconds. */
  readonly now: string;
  /** Whether to add our finalizer; it is removed in any case. */
  readonly addFinalizer: boolean;
}

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

/** undefined where the Service is as it is wanted. */
export function servicePatch(
  current: CurrentService,
  wish: DesiredService,
  { now, addFinalizer }: PatchOptions,
): ServicePatch | undefined {
  const finalizers = finalizersOf(current, wish, addFinalizer);
  const merged = statusOf(current, wish, now);
  const isSameMetadata = finalizers === current.finalizers;
  const isSame = isSameStatus(current, merged);
  if (isSameMetadata && isSame) return undefined;
  const { uid, resourceVersion } = current;
  const { ingress, conditions } = merged;
  return {
    metadata: { uid, resourceVersion, ...(isSameMetadata ? {} : { finalizers }) },
    ...(isSame ? {} : { status: { loadBalancer: { ingress }, conditions } }),
  };
}

function statusOf(current: CurrentService, wish: DesiredService, now: string): MergedStatus {
  if (wish.kind === 'serve') return mergeStatus(current, wish.status, now);
  if (wish.kind === 'release') return clearedStatus(current);
  if (isMarkedOurs(current)) return current;
  const message = 'An address is being chosen';
  const condition = { type: IP_ALLOCATED, status: 'False', reason: 'Pending', message } as const;
  const merged = mergeStatus(current, { ingress: [], conditions: [condition], isSettled: false }, now);
  return { ingress: current.ingress, conditions: merged.conditions };
}

/** The same list where nothing is to be changed. */
function finalizersOf(
  current: CurrentService,
  wish: DesiredService,
  addFinalizer: boolean,
): readonly string[] {
  const { finalizers, isDeleting } = current;
  const hasIt = finalizers.includes(FINALIZER);
  if (wish.kind !== 'release') {
    // The API refuses a new finalizer on what is being deleted.
    return hasIt || isDeleting || !addFinalizer ? finalizers : [...finalizers, FINALIZER];
  }
  // Without our mark it is another load balancer's.
  return hasIt && isMarkedOurs(current) ? finalizers.filter((name) => name !== FINALIZER) : finalizers;
}
