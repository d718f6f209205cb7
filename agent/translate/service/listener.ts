// One listener from one port of a Service: what its annotations ask for, and the members that were found. Pure.

import type { Service, ServicePort } from '../../kubernetes/objects.ts';
import type { Family, HealthMonitor, Listener, Member, Pool } from '../../model/load-balancer.ts';
import type { AnnotationValues } from '../annotations/annotations.ts';
import type { SourceRanges } from './source-ranges.ts';

export interface ListenerParts {
  readonly service: Service;
  readonly port: ServicePort;
  readonly family: Family;
  /** Those that it may listen on. */
  readonly addresses: readonly string[];
  readonly values: AnnotationValues;
  readonly ranges: SourceRanges;
  readonly members: readonly Member[];
  readonly monitor: HealthMonitor | undefined;
}

/** Unambiguous, because neither namespaces nor Service names may hold a colon. Joined, as keys of objects are. */
export function listenerName({ namespace, name }: Service, port: ServicePort, family: Family): string {
  return [namespace, name, port.protocol.toLowerCase(), port.port, family].join(':');
}

export function listenerOf(parts: ListenerParts): Listener {
  const { service, port, family, addresses, values, ranges } = parts;
  return {
    name: listenerName(service, port, family),
    protocol: port.protocol,
    port: port.port,
    portName: port.name,
    family,
    addresses,
    mode: port.protocol === 'TCP' ? values.mode : 'tcp',
    acceptProxy: values.acceptProxyProtocol,
    allowedCidrs: ranges.allowed[family],
    connectionLimit: values.connectionLimit,
    rateLimit: values.rateLimit,
    clientTimeout: values.timeoutClient,
    pool: poolOf(parts),
  };
}

function poolOf({ values, service, members, monitor }: ListenerParts): Pool {
  return {
    algorithm: values.algorithm,
    persistence: service.affinitySeconds,
    monitor,
    proxyProtocol: values.proxyProtocol,
    timeouts: {
      connect: values.timeoutConnect,
      server: values.timeoutServer,
      tunnel: values.timeoutTunnel,
      queue: values.timeoutQueue,
    },
    memberConnectionLimit: values.memberConnectionLimit,
    whenEmpty: values.whenEmpty,
    whenAllDown: values.whenAllDown,
    members,
  };
}
