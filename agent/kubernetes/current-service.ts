// A Service as it is in the API, with the fields that writers need: conditions, finalizers, versions. The parser of
// objects prunes these fields, so the reflector's JSON is read here once more.

import { compactList, intern } from '../base/compact.ts';
import { isMapping } from '../base/validate.ts';

export interface CurrentService {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** 0 if the API server does not count generations of Services, as those up to 1.37. */
  readonly generation: number;
  readonly type: string;
  /** `metadata.deletionTimestamp` is set. */
  readonly isDeleting: boolean;
  readonly finalizers: readonly string[];
  readonly ingress: readonly Ingress[];
  readonly conditions: readonly Condition[];
}

/** As in `status.loadBalancer.ingress`; unknown fields are kept. */
export interface Ingress {
  readonly ip?: string;
  readonly ipMode?: string;
  readonly hostname?: string;
  readonly ports?: readonly PortStatus[];
}

export interface PortStatus {
  readonly port: number;
  readonly protocol: string;
  /** `Name` or `example.org/Name`; absent if the port is served. */
  readonly error?: string;
}

/** metav1.Condition; unknown fields are kept. */
export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime: string;
  readonly observedGeneration?: number;
}

/** undefined if it is not a Service from an API. The items of its lists are the JSON's own, not copies. */
export function readCurrentService(json: unknown): CurrentService | undefined {
  if (!isMapping(json) || !isMapping(json.metadata)) return undefined;
  const { namespace, name, uid, resourceVersion, generation, finalizers, deletionTimestamp } = json.metadata;
  if (typeof namespace !== 'string' || typeof name !== 'string') return undefined;
  if (typeof uid !== 'string' || typeof resourceVersion !== 'string') return undefined;
  const { type } = isMapping(json.spec) ? json.spec : {};
  const status = isMapping(json.status) ? json.status : {};
  const loadBalancer = isMapping(status.loadBalancer) ? status.loadBalancer : {};
  return {
    namespace,
    name,
    uid,
    resourceVersion,
    generation: typeof generation === 'number' ? generation : 0,
    type: typeof type === 'string' ? intern(type) : 'ClusterIP',
    isDeleting: deletionTimestamp !== undefined && deletionTimestamp !== null,
    finalizers: listOf<string>(finalizers, (item) => typeof item === 'string').map(intern),
    ingress: listOf(loadBalancer.ingress, isMapping),
    conditions: listOf<Condition>(status.conditions, isCondition).map(withSharedTexts),
  };
}

function isCondition(item: unknown): boolean {
  return isMapping(item) && typeof item.type === 'string';
}

/** Thousands of Services have equal texts, except for the message. */
function withSharedTexts(condition: Condition): Condition {
  const { type, reason, lastTransitionTime } = condition;
  return {
    ...condition,
    type: intern(type),
    reason: intern(reason),
    lastTransitionTime: intern(lastTransitionTime),
  };
}

/** Skips wrong items, so that a wrong answer is no exception. */
function listOf<T>(json: unknown, isItem: (item: unknown) => boolean): readonly T[] {
  return Array.isArray(json) ? compactList<T>(json.filter(isItem)) : compactList<T>(undefined);
}
