// A listener whose requests or connections go to the pools of routes, with the settings' defaults: of Gateways and of Ingress
// classes. Pure.

import { compactList } from '../../base/compact.ts';
import type { Family, Listener, OwnerKey, Pool, Protocol, Tls, UserList } from '../../model/load-balancer.ts';
import { listenerName, ownerOf } from '../../model/names.ts';
import type { Routing } from '../../model/routes.ts';
import type { TranslateSettings } from '../translate-settings.ts';
import type { FrontOptions } from './front-options.ts';

export interface RoutedPlace {
  readonly key: OwnerKey;
  readonly protocol: Protocol;
  readonly port: number;
  readonly family: Family;
  readonly addresses: readonly string[];
  /** undefined for UDP, whose members are in the listener's own pool. */
  readonly routing: Routing | undefined;
  readonly tls: Tls | undefined;
  readonly front: FrontOptions;
  /** Of routes with basic authentication. */
  readonly users: readonly UserList[];
}

const ALL_CLIENTS: Readonly<Record<Family, readonly string[]>> = { v4: ['0.0.0.0/0'], v6: ['::/0'] };

export function routedListener(place: RoutedPlace, settings: TranslateSettings): Listener {
  const { key, protocol, port, family, addresses, routing, tls, front, users } = place;
  const { namespace, name } = ownerOf(key);
  const isUdp = protocol === 'UDP';
  const values = settings.annotationDefaults;
  return {
    name: listenerName(ownerOf(key), { protocol, port }, family),
    labels: { namespace, service: name, port: String(port), protocol, family },
    engine: isUdp ? 'kernel' : 'haproxy',
    sourceAddress: 'load-balancer',
    reachedBy: 'clients',
    routing,
    protocol,
    port,
    portName: '',
    family,
    addresses: compactList(addresses),
    mode: routing?.kind === 'http' ? 'http' : 'tcp',
    tls,
    acceptProxy: !isUdp && values.acceptProxyProtocol,
    allowedCidrs: ALL_CLIENTS[family],
    connectionLimit: 0,
    rateLimit: 0,
    ...(routing?.kind === 'http' && front.http),
    ...(routing?.kind === 'http' && users.length > 0 && { userLists: users }),
    log: isUdp ? 'none' : front.log,
    clientTimeout: values.timeoutClient,
    pool: emptyPool(settings),
  };
}

function emptyPool({ annotationDefaults: values }: TranslateSettings): Pool {
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
    members: [],
  };
}
