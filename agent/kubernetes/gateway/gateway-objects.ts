// Gateways and what stands around them in the Gateway API, as flat values with the API's defaults filled in.
// gateway-schemas.ts makes them; the fields have the names of the API (gateway.networking.k8s.io/v1).

import type { Selector } from '../label-selector.ts';
import type { DatedObject, GroupKind, ObjectReference } from './object-reference.ts';
import type { Route } from './route-objects.ts';

/** The kinds of the Gateway API that the agent reads. */
export type GatewayApiObject =
  | GatewayClass
  | Gateway
  | ListenerSet
  | Route
  | ReferenceGrant
  | BackendTlsPolicy
  | Namespace;

export interface GatewayClass {
  readonly kind: 'GatewayClass';
  /** The name: classes have no namespace. */
  readonly key: string;
  readonly name: string;
  readonly uid: string;
  readonly generation: number;
  readonly controllerName: string;
  /** It has `spec.parametersRef`, for which the agent has no use. */
  readonly hasParameters: boolean;
}

export interface Gateway extends DatedObject {
  readonly kind: 'Gateway';
  readonly gatewayClassName: string;
  readonly listeners: readonly ListenerSpec[];
  /** Empty: the agent chooses. */
  readonly addresses: readonly RequestedAddress[];
  /** The namespaces whose ListenerSets may attach. */
  readonly allowedListeners: NamespaceRule;
  /** `spec.tls.backend.clientCertificateRef`: what members get if they ask for a certificate. */
  readonly backendCertificate: ObjectReference | undefined;
  readonly clientValidation: {
    readonly default: ClientValidation | undefined;
    readonly perPort: readonly {
      readonly port: number;
      readonly validation: ClientValidation | undefined;
    }[];
  };
  /** It has `spec.infrastructure.parametersRef`. */
  readonly hasParameters: boolean;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** The IP addresses of `status.addresses`, canonical. */
  readonly statusIPs: readonly string[];
  /** `metadata.deletionTimestamp` is set. */
  readonly deleting: boolean;
}

export interface RequestedAddress {
  /** `IPAddress`, `Hostname`, or another type. */
  readonly type: string;
  /** '' asks for any address. */
  readonly value: string;
}

/** Certificates that clients must have. */
export interface ClientValidation {
  readonly authorities: readonly ObjectReference[];
  readonly mode: 'AllowValidOnly' | 'AllowInsecureFallback';
}

/** Listeners that are added to a Gateway. */
export interface ListenerSet extends DatedObject {
  readonly kind: 'ListenerSet';
  readonly parent: ParentOfSet;
  readonly listeners: readonly ListenerSpec[];
}

export interface ParentOfSet {
  readonly group: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

export interface ListenerSpec {
  readonly name: string;
  /** '' for any; `*.example.org` for a wildcard. */
  readonly hostname: string;
  readonly port: number;
  /** `HTTP`, `HTTPS`, `TLS`, `TCP`, `UDP`, or one that the agent does not know. */
  readonly protocol: string;
  readonly tls: ListenerTls | undefined;
  /** The namespaces whose routes may attach. */
  readonly namespaces: NamespaceRule;
  /** The kinds of route that may attach; empty: all of the protocol. */
  readonly kinds: readonly GroupKind[];
}

export interface ListenerTls {
  readonly mode: 'Terminate' | 'Passthrough';
  readonly certificates: readonly ObjectReference[];
  readonly options: Readonly<Record<string, string>>;
}

export interface NamespaceRule {
  readonly from: 'All' | 'Same' | 'None' | 'Selector';
  /** Used if `from` is `Selector`. */
  readonly selector: Selector;
}

/** Permits references from other namespaces to its own. */
export interface ReferenceGrant {
  readonly kind: 'ReferenceGrant';
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly from: readonly (GroupKind & { readonly namespace: string })[];
  /** `name` '': all of the kind. */
  readonly to: readonly (GroupKind & { readonly name: string })[];
}

/** TLS to the members of Services. */
export interface BackendTlsPolicy extends DatedObject {
  readonly kind: 'BackendTLSPolicy';
  /** `sectionName`: the name of a port, '' for all ports. */
  readonly targets: readonly (GroupKind & { readonly name: string; readonly sectionName: string })[];
  readonly authorities: readonly (GroupKind & { readonly name: string })[];
  /** '' for none. */
  readonly wellKnownAuthorities: string;
  readonly hostname: string;
  /** It has `validation.subjectAltNames`. */
  readonly hasSubjectAltNames: boolean;
}

/** Its author means a Service, perhaps with a wrong group or kind. */
export function meansService({ group, kind }: GroupKind): boolean {
  return /^(?:|v1|core|core\/v1)$/i.test(group) && /^services?$/i.test(kind);
}

export interface Namespace {
  readonly kind: 'Namespace';
  /** The name. */
  readonly key: string;
  readonly name: string;
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
}
