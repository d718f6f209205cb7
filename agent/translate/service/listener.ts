// Makes a listener from one port of a Service, its annotations and its members. Pure.

import type { Service, ServicePort } from '../../kubernetes/objects.ts';
import type {
  ConnectionLog,
  Engine,
  ErrorPages,
  Family,
  HealthMonitor,
  Listener,
  Member,
  MemberTls,
  Pool,
  Tls,
} from '../../model/load-balancer.ts';
import { listenerName } from '../../model/names.ts';
import type { AnnotationValues } from '../annotations/annotations.ts';
import { engineOf } from './engine.ts';
import type { SourceRanges } from './source-ranges.ts';

export interface ListenerParts {
  readonly service: Service;
  readonly port: ServicePort;
  readonly family: Family;
  /** The addresses to bind. */
  readonly addresses: readonly string[];
  readonly values: AnnotationValues;
  readonly log: ConnectionLog;
  readonly tls: Tls | undefined;
  readonly memberTls: MemberTls | undefined;
  readonly errorPages: ErrorPages | undefined;
  readonly ranges: SourceRanges;
  readonly members: readonly Member[];
  readonly monitor: HealthMonitor | undefined;
}

export function listenerOf(parts: ListenerParts): Listener {
  const { service, port, family, addresses, values, log, tls, ranges, errorPages } = parts;
  const { namespace, name } = service;
  const engine = engineOf(port, values);
  return {
    name: serviceListenerName(service, port, family),
    labels: { namespace, service: name, port: String(port.port), protocol: port.protocol, family },
    engine,
    sourceAddress: engine === 'kernel' ? values.sourceAddress : 'load-balancer',
    reachedBy: 'clients',
    routing: undefined,
    protocol: port.protocol,
    port: port.port,
    portName: port.name,
    family,
    addresses,
    mode: engine === 'kernel' || values.mode === 'tcp' ? 'tcp' : 'http',
    tls: engine === 'haproxy' ? tls : undefined,
    acceptProxy: engine === 'haproxy' && values.acceptProxyProtocol,
    allowedCidrs: ranges.allowed[family],
    connectionLimit: values.connectionLimit,
    rateLimit: values.rateLimit,
    clientTimeout: values.timeoutClient,
    ...(engine === 'haproxy' && values.mode !== 'tcp' && httpOptions(values)),
    ...(engine === 'haproxy' && values.mode !== 'tcp' && errorPages && { errorPages }),
    log: engine === 'haproxy' ? log : 'none',
    pool: poolOf(parts, engine),
  };
}

export type HttpOption = 'trustedProxies' | 'requestIds' | 'compression';

/** Of a listener in mode http; without fields of features that nobody asks for. */
export function httpOptions({
  trustedProxies,
  requestIds,
  compression,
}: Pick<AnnotationValues, HttpOption>): Pick<Listener, HttpOption> {
  return {
    ...(trustedProxies.length > 0 && { trustedProxies }),
    ...(requestIds && { requestIds }),
    ...(compression !== 'none' && { compression }),
  };
}

export function serviceListenerName(
  { namespace, name }: Service,
  port: Pick<ServicePort, 'protocol' | 'port'>,
  family: Family,
): string {
  return listenerName({ kind: 'Service', namespace, name }, port, family);
}

function poolOf(parts: ListenerParts, engine: Engine): Pool {
  const { values, service, memberTls, members, monitor } = parts;
  return {
    algorithm: values.algorithm,
    persistence: service.affinitySeconds,
    monitor,
    tls: engine === 'haproxy' ? memberTls : undefined,
    httpVersion: engine === 'haproxy' && values.mode !== 'tcp' ? values.memberHttpVersion : '1.1',
    cookie: '',
    proxyProtocol: engine === 'haproxy' ? values.proxyProtocol : 'none',
    timeouts: {
      connect: values.timeoutConnect,
      server: values.timeoutServer,
      tunnel: values.timeoutTunnel,
      queue: values.timeoutQueue,
    },
    memberConnectionLimit: engine === 'haproxy' ? values.memberConnectionLimit : 0,
    whenEmpty: values.whenEmpty,
    whenAllDown: values.whenAllDown,
    members,
  };
}
