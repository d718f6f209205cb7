// Ingresses and their classes as flat values with the API's defaults filled in. ingress-schemas.ts makes them; the fields
// have the names of the API (networking.k8s.io/v1).

import type { DatedObject } from '../gateway/object-reference.ts';

export interface IngressClass {
  readonly kind: 'IngressClass';
  /** The name: classes have no namespace. */
  readonly key: string;
  readonly name: string;
  readonly uid: string;
  /** Milliseconds since the epoch; Infinity if unknown. */
  readonly created: number;
  readonly generation: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly controller: string;
  /** It has `spec.parameters`, for which the agent has no use. */
  readonly hasParameters: boolean;
}

export interface Ingress extends DatedObject {
  readonly kind: 'Ingress';
  readonly annotations: Readonly<Record<string, string>>;
  /** `spec.ingressClassName`, otherwise the annotation `kubernetes.io/ingress.class`; '' for none. */
  readonly className: string;
  /** The annotation, if it names another class than the field: then the Ingress belongs to none. */
  readonly otherClassName: string;
  readonly defaultBackend: IngressBackend | undefined;
  readonly rules: readonly IngressRule[];
  readonly tls: readonly IngressTls[];
  /** `status.loadBalancer.ingress[].ip`, canonical. */
  readonly statusIPs: readonly string[];
  /** `metadata.deletionTimestamp` is set. */
  readonly deleting: boolean;
}

export interface IngressRule {
  /** '' for all hosts; `*.example.org` for a wildcard. */
  readonly host: string;
  /** Empty: the rule has none of its own. */
  readonly paths: readonly IngressPath[];
}

export interface IngressPath {
  /** Begins with a slash; '' only with `ImplementationSpecific`. */
  readonly path: string;
  readonly type: 'Exact' | 'Prefix' | 'ImplementationSpecific';
  readonly backend: IngressBackend;
}

export type IngressBackend =
  /** `portName` '': by number; `port` 0: by name. */
  | { readonly kind: 'service'; readonly name: string; readonly port: number; readonly portName: string }
  /** Another kind of object, for which the agent has no use. */
  | { readonly kind: 'resource'; readonly resource: string };

export interface IngressTls {
  /** Empty: all. */
  readonly hosts: readonly string[];
  /** '' for none. */
  readonly secretName: string;
}
