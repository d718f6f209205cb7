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
import { ejectionOf, plainListener, plainPool } from './plain-listener.ts';

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
  /** Canonical CIDRs. */
  readonly allowed: readonly string[];
  readonly members: readonly Member[];
  readonly monitor: HealthMonitor | undefined;
}

export function listenerOf(parts: ListenerParts): Listener {
  const { service, port, family, addresses, values, allowed } = parts;
  const { namespace, name } = service;
  const place = { ...port, name: serviceListenerName(service, port, family), namespace, service: name };
  const engine = engineOf(port, values);
  return {
    ...plainListener({ ...place, portName: port.name, family }, values),
    engine,
    addresses,
    allowedCidrs: allowed,
    connectionLimit: values.connectionLimit,
    rateLimit: values.rateLimit,
    pool: poolOf(parts, engine),
    ...(engine === 'kernel' ? { sourceAddress: sourceOf(values) } : ofHaproxy(parts)),
  };
}

function sourceOf({ members, sourceAddress }: AnnotationValues): Listener['sourceAddress'] {
  return members === 'direct' ? 'direct' : sourceAddress;
}

function ofHaproxy({ values, log, tls, errorPages }: ListenerParts): Partial<Listener> {
  const own = { tls, acceptProxy: values.acceptProxyProtocol, log };
  if (values.mode === 'tcp') return own;
  return { ...own, mode: 'http', ...httpOptions(values), ...(errorPages && { errorPages }) };
}

export type HttpOption = 'trustedProxies' | 'requestIds' | 'compression';

/** Options of a listener in mode http; without fields of features that no object asks for. */
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

function poolOf({ values, service, memberTls, members, monitor }: ListenerParts, engine: Engine): Pool {
  const { whenEmpty, whenAllDown, proxyProtocol, memberConnectionLimit } = values;
  return {
    ...plainPool(values),
    persistence: service.affinitySeconds,
    monitor,
    whenEmpty,
    whenAllDown,
    members,
    ...(engine === 'haproxy' && {
      tls: memberTls,
      httpVersion: values.mode === 'tcp' ? '1.1' : values.memberHttpVersion,
      proxyProtocol,
      memberConnectionLimit,
      ...ejectionOf(values, values.mode === 'tcp' ? 'tcp' : 'http'),
    }),
  };
}
