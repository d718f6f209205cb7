// A listener and a pool without what only some owners ask for, with the timeouts of annotations; and the load balancer that
// they belong to. Pure.

import { compactList } from '../../base/compact.ts';
import type { Listener, LoadBalancer, OwnerKey, Pool, Problem, Vip } from '../../model/load-balancer.ts';
import { ownerOf } from '../../model/names.ts';
import type { AnnotationValues } from '../annotations/annotations.ts';

/** `namespace` and `service` are labels of its metrics. */
export interface ListenerPort extends Pick<Listener, 'name' | 'protocol' | 'port' | 'portName' | 'family'> {
  readonly namespace: string;
  readonly service: string;
}

/** A listener of HAProxy without an address, and for no client. */
export function plainListener(place: ListenerPort, values: AnnotationValues): Listener {
  const { name, namespace, service, protocol, port, portName, family } = place;
  return {
    name,
    labels: { namespace, service, port: String(port), protocol, family },
    engine: 'haproxy',
    sourceAddress: 'load-balancer',
    reachedBy: 'clients',
    routing: undefined,
    protocol,
    port,
    portName,
    family,
    addresses: compactList(undefined),
    mode: 'tcp',
    tls: undefined,
    acceptProxy: false,
    allowedCidrs: compactList(undefined),
    connectionLimit: 0,
    rateLimit: 0,
    log: 'none',
    clientTimeout: values.timeoutClient,
    pool: plainPool(values),
  };
}

/** Without members. */
export function plainPool(values: AnnotationValues): Pool {
  return {
    algorithm: values.algorithm,
    persistence: 0,
    monitor: undefined,
    tls: undefined,
    httpVersion: '1.1',
    cookie: '',
    proxyProtocol: 'none',
    timeouts: {
      connect: values.timeoutConnect,
      server: values.timeoutServer,
      tunnel: values.timeoutTunnel,
      queue: values.timeoutQueue,
    },
    memberConnectionLimit: 0,
    whenEmpty: 'reject',
    whenAllDown: 'reject',
    members: compactList(undefined),
  };
}

/** Which members rest after errors, in this mode; without fields of features that no object asks for. */
export function ejectionOf(
  { ejectAfter, ejectStatuses: statuses, ejectShare: share, slowStart }: AnnotationValues,
  mode: Listener['mode'],
): Pick<Pool, 'ejection' | 'slowStart'> {
  const after = ejectAfter ?? (mode === 'http' ? HTTP_EJECT_AFTER : 0);
  return { ...(after > 0 && { ejection: { after, statuses, share } }), ...(slowStart > 0 && { slowStart }) };
}

/** One error has many causes, and three in a row of a member that is well are rare. */
const HTTP_EJECT_AFTER = 3;

export function loadBalancerOf(
  key: OwnerKey,
  vips: readonly Vip[],
  listeners: readonly Listener[],
  problems: readonly Problem[],
): LoadBalancer {
  const { namespace, name } = ownerOf(key);
  return {
    kind: 'LoadBalancer',
    key,
    namespace,
    name,
    vips,
    listeners: compactList(listeners),
    problems: compactList(problems),
  };
}
