// The kinds of objects whose status the agent writes, besides Services, and their paths in the API.

import type { StatusKind } from '../model/object-status.ts';
import { GATEWAY_API_VERSION } from './gateway/names.ts';

const PLURALS: Readonly<Record<StatusKind, string>> = {
  GatewayClass: 'gatewayclasses',
  Gateway: 'gateways',
  ListenerSet: 'listenersets',
  HTTPRoute: 'httproutes',
  GRPCRoute: 'grpcroutes',
  TLSRoute: 'tlsroutes',
  TCPRoute: 'tcproutes',
  UDPRoute: 'udproutes',
  BackendTLSPolicy: 'backendtlspolicies',
  Ingress: 'ingresses',
};

export const STATUS_KINDS = Object.keys(PLURALS) as readonly StatusKind[];

export function isStatusKind(kind: string): kind is StatusKind {
  return Object.hasOwn(PLURALS, kind);
}

export function apiVersionOf(kind: StatusKind): string {
  return kind === 'Ingress' ? 'networking.k8s.io/v1' : GATEWAY_API_VERSION;
}

/** `/apis/gateway.networking.k8s.io/v1/namespaces/default/gateways/edge`. */
export function objectPath({
  kind,
  namespace,
  name,
}: {
  readonly kind: StatusKind;
  /** '' for objects of the whole cluster. */
  readonly namespace: string;
  readonly name: string;
}): string {
  const place = namespace === '' ? '' : `/namespaces/${encodeURIComponent(namespace)}`;
  return `/apis/${apiVersionOf(kind)}${place}/${PLURALS[kind]}/${encodeURIComponent(name)}`;
}
