// A listener whose requests or connections go to the pools of routes, with the settings' defaults: of Gateways and of Ingress
// classes. Pure.

import { compactList } from '../../base/compact.ts';
import { memoByIdentity } from '../../base/memo.ts';
import { answeringRule, CLOSED } from '../../model/answering-rule.ts';
import type {
  Family,
  Listener,
  OwnerKey,
  Protocol,
  Tls,
  TokenKeySet,
  UserList,
} from '../../model/load-balancer.ts';
import { listenerName, ownerOf } from '../../model/names.ts';
import type { HostRoutes, HttpRouting, RouteEntry, RouteRule, Routing } from '../../model/routes.ts';
import { plainListener } from '../service/plain-listener.ts';
import { ALL_CLIENTS } from '../service/source-ranges.ts';
import type { TranslateSettings } from '../translate-settings.ts';
import type { FrontOptions } from './front-options.ts';

export interface RoutedPort {
  readonly key: OwnerKey;
  readonly protocol: Protocol;
  readonly port: number;
  readonly family: Family;
  readonly addresses: readonly string[];
  /** undefined for UDP, whose members are in the listener's own pool. */
  readonly routing: Routing | undefined;
  readonly tls: Tls | undefined;
  readonly front: FrontOptions;
  /** Users of routes with basic authentication. */
  readonly users: readonly UserList[];
  /** Keys of routes with tokens. */
  readonly tokenKeys: readonly TokenKeySet[];
  /** A route asks a service whether requests are let in. */
  readonly asksServers: boolean;
  /** A route has a default backend answer instead of members. */
  readonly replacesErrors?: boolean;
}

export function routedListener(place: RoutedPort, settings: TranslateSettings): Listener {
  const { key, protocol, port, family, addresses, routing, tls, front, users, tokenKeys } = place;
  const { asksServers, replacesErrors = false } = place;
  const { namespace, name } = ownerOf(key);
  const isUdp = protocol === 'UDP';
  const values = settings.annotationDefaults;
  const listener = listenerName(ownerOf(key), { protocol, port }, family);
  const { isClosed } = front;
  const closed = isClosed && routing?.kind === 'http' ? closedRouting(routing) : undefined;
  return {
    ...plainListener(
      { name: listener, namespace, service: name, protocol, port, portName: '', family },
      values,
    ),
    engine: isUdp ? 'kernel' : 'haproxy',
    routing: closed ?? routing,
    addresses: compactList(addresses),
    tls,
    allowedCidrs: isClosed && closed === undefined ? [] : ALL_CLIENTS[family],
    ...(!isUdp && { acceptProxy: values.acceptProxyProtocol, log: front.log }),
    ...(routing?.kind === 'http' && { mode: 'http', ...front.http }),
    ...(routing?.kind === 'http' && users.length > 0 && { userLists: users }),
    ...(routing?.kind === 'http' && tokenKeys.length > 0 && { tokenKeys }),
    ...(routing?.kind === 'http' && asksServers && { asksServers: true as const }),
    ...(routing?.kind === 'http' && replacesErrors && { replacesErrors: true as const }),
  };
}

/** All requests get status 403, of whatever hosts. */
const closedRouting = memoByIdentity(
  ({ sections, ...others }: HttpRouting): HttpRouting => ({
    ...others,
    sections: sections.map((section) => ({ ...section, hosts: section.hosts.map(closedHost) })),
  }),
);

const closedHost = memoByIdentity(({ host, entries }: HostRoutes): HostRoutes => {
  const closed = entries.map(({ match, rule }): RouteEntry => ({ match, rule: closedRule(rule) }));
  return { host, entries: closed };
});

const closedRule = memoByIdentity((rule: RouteRule): RouteRule => answeringRule(rule, CLOSED.status));
