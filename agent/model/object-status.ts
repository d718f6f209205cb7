// The statuses that objects of Gateway API and Ingress get in the API, as values without times. Translation makes them
// beside the load balancers; each owner has its own part of a route's status, and one writer joins the parts.
// Values only; imports nothing.

export type ObjectStatus =
  | GatewayClassStatus
  | GatewayStatus
  | ListenerSetStatus
  | RouteStatus
  | PolicyStatus
  | IngressStatus;

export type StatusKind = ObjectStatus['kind'];
export type RouteKind = 'HTTPRoute' | 'GRPCRoute' | 'TLSRoute' | 'TCPRoute' | 'UDPRoute';

/** The object that was read. */
export interface StatusSubject {
  /** '' for a GatewayClass. */
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** `metadata.generation`, the `observedGeneration` of the conditions; 0 if unknown. */
  readonly generation: number;
}

/** Why something is not as asked for: the reason and the message of a condition that is False. */
export interface RefusalReason {
  readonly reason: string;
  readonly message: string;
}

export interface StatusCondition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  /** CamelCase. */
  readonly reason: string;
  readonly message: string;
}

/**
 * Names of the listeners of the load balancer that must serve. The condition `Programmed` follows from them, unless
 * `conditions` has one, because the objects themselves are wrong.
 */
export type ProgrammedBy = readonly string[];

export interface GatewayClassStatus extends StatusSubject {
  readonly kind: 'GatewayClass';
  readonly conditions: readonly StatusCondition[];
  /** Names, sorted. */
  readonly supportedFeatures: readonly string[];
}

export interface GatewayStatus extends StatusSubject {
  readonly kind: 'Gateway';
  readonly conditions: readonly StatusCondition[];
  readonly programmedBy: ProgrammedBy;
  readonly addresses: readonly string[];
  readonly listeners: readonly ListenerStatus[];
  readonly attachedListenerSets: number;
  /** It is not this agent's any more: only what this agent has written is removed. */
  readonly isWithdrawn?: true;
}

export interface ListenerSetStatus extends StatusSubject {
  readonly kind: 'ListenerSet';
  readonly conditions: readonly StatusCondition[];
  readonly programmedBy: ProgrammedBy;
  readonly listeners: readonly ListenerStatus[];
}

/** The status of one entry of `spec.listeners`. */
export interface ListenerStatus {
  readonly name: string;
  readonly supportedKinds: readonly { readonly group: string; readonly kind: string }[];
  readonly attachedRoutes: number;
  readonly conditions: readonly StatusCondition[];
  readonly programmedBy: ProgrammedBy;
}

/** The entries of one owner. */
export interface RouteStatus extends StatusSubject {
  readonly kind: RouteKind;
  readonly parents: readonly ParentStatus[];
}

export interface PolicyStatus extends StatusSubject {
  readonly kind: 'BackendTLSPolicy';
  readonly ancestors: readonly ParentStatus[];
}

export interface ParentStatus {
  readonly ref: ParentReference;
  readonly conditions: readonly StatusCondition[];
}

/** As the object has it; absent fields stay absent. */
export interface ParentReference {
  readonly group?: string;
  readonly kind?: string;
  readonly namespace?: string;
  readonly name: string;
  readonly sectionName?: string;
  readonly port?: number;
}

export interface IngressStatus extends StatusSubject {
  readonly kind: 'Ingress';
  readonly addresses: readonly string[];
  readonly ports: readonly number[];
  /** An address is published if one of them serves at it. */
  readonly programmedBy: ProgrammedBy;
  /** As of a Gateway. */
  readonly isWithdrawn?: true;
}
