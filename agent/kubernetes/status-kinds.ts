// The kinds of objects whose status the agent writes, besides Services, and their paths in the API.

import type { StatusKind } from '../model/object-status.ts';
import { KINDS } from './kinds.ts';

const WITH_STATUS: Readonly<Record<StatusKind, true>> = {
  GatewayClass: true,
  Gateway: true,
  ListenerSet: true,
  HTTPRoute: true,
  GRPCRoute: true,
  TLSRoute: true,
  TCPRoute: true,
  UDPRoute: true,
  BackendTLSPolicy: true,
  Ingress: true,
};

export const STATUS_KINDS = Object.keys(WITH_STATUS) as readonly StatusKind[];

export function isStatusKind(kind: string): kind is StatusKind {
  return Object.hasOwn(WITH_STATUS, kind);
}

export function apiVersionOf(kind: StatusKind): string {
  return KINDS[kind].apiVersion;
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
  const { apiVersion, plural } = KINDS[kind];
  const place = namespace === '' ? '' : `/namespaces/${encodeURIComponent(namespace)}`;
  return `/apis/${apiVersion}${place}/${plural}/${encodeURIComponent(name)}`;
}
