// Translates Gateways: one load balancer from one Gateway, the ListenerSets attached to it, and all their routes, with the
// statuses of all of these (https://gateway-api.sigs.k8s.io/reference/spec/).
// Reads the store of objects, the settings and the index of port owners; remembers what did not change, so that the change of
// one route among thousands costs little.

import type { Gateway } from '../../kubernetes/gateway/gateway-objects.ts';
import { portRefusal } from '../../kubernetes/port-limit.ts';
import type { Dependency, RouteParent } from '../../model/desired-state.ts';
import type { Listener, OwnerKey, Problem, Vip } from '../../model/load-balancer.ts';
import { ownerOf } from '../../model/names.ts';
import type { RefusalReason } from '../../model/object-status.ts';
import type { PortRequest } from '../../model/port-owners.ts';
import { ownAddresses } from '../own-addresses.ts';
import { ageOf, precedenceOf } from '../precedence.ts';
import { frontOptions } from '../routes/front-options.ts';
import { tokenKeySets } from '../routes/route-tokens.ts';
import { userLists } from '../routes/route-users.ts';
import { loadBalancerOf } from '../service/plain-listener.ts';
import type { TranslatorOptions } from '../service/translator-options.ts';
import { NO_PORTS, type RequestedPorts, type Translation, type Translator } from '../translate.ts';
import { attachedSets } from './attached-sets.ts';
import { isOurs, notOurs } from './conditions.ts';
import { GatewayMemory } from './gateway-memory.ts';
import { gatewayStatuses } from './gateway-statuses.ts';
import type { GatewayView } from './gateway-view.ts';
import { gatewayVips } from './gateway-vips.ts';
import { hostsOfOneNamespace } from './hosts-of-one-namespace.ts';
import { memberCertificate } from './listener-tls.ts';
import { type GatewayListener, gatewayListeners, transportOf } from './listeners.ts';
import { modelListeners } from './model-listeners.ts';
import { ofOneKind } from './one-kind-of-route.ts';
import { ResolvedRoutes } from './resolved-route.ts';
import {
  asksServers,
  authRoutesOf,
  dependenciesOf,
  poolsOf,
  problemsOf,
  routesByListener,
  tokenRoutesOf,
} from './route-portions.ts';

export type GatewayTranslatorOptions = TranslatorOptions<GatewayView>;

export class GatewayTranslator implements Translator {
  readonly #options: GatewayTranslatorOptions;
  readonly #routes: ResolvedRoutes;
  readonly #memories = new Map<OwnerKey, GatewayMemory>();

  constructor(options: GatewayTranslatorOptions) {
    this.#options = options;
    this.#routes = new ResolvedRoutes(options.cluster);
  }

  ports(key: OwnerKey): RequestedPorts {
    const { cluster, ofPools } = this.#options;
    const gateway = this.#ownGateway(key);
    if (typeof gateway !== 'object') return NO_PORTS;
    const { allowed } = attachedSets(gateway, cluster, new Set());
    const specs = [gateway, ...allowed].flatMap(({ listeners }) => listeners);
    const places = new Map(specs.map((spec) => [`${transportOf(spec)} ${spec.port}`, spec]));
    const ports: PortRequest[] = [];
    const isOfFolder = cluster.isOfManifest(gateway);
    const pools = ofPools(key);
    const refusalOf = portRefusal(key, pools);
    for (const vip of gatewayVips(gateway, pools).vips) {
      const precedence = precedenceOf(vip, { isOfFolder, statusIPs: gateway.statusIPs });
      for (const spec of places.values()) {
        const place = { address: vip.address, protocol: transportOf(spec), port: spec.port };
        if (refusalOf(place.address, place) === undefined) ports.push({ ...place, ...precedence });
      }
    }
    return { created: ageOf(gateway.created, isOfFolder), ports };
  }

  translate(key: OwnerKey): Translation {
    const gateway = this.#ownGateway(key);
    if (typeof gateway === 'object') return this.#translate(key, gateway);
    this.#memories.delete(key);
    const object = gatewayKey(key);
    const found = this.#options.cluster.gateway(object);
    if (found === undefined) return { result: undefined, reads: [] };
    const reads: Dependency[] = [`gateway ${object}`, `gatewayclass ${found.gatewayClassName}`];
    return { result: { kind: 'Ignored', key, reason: gateway }, reads };
  }

  /** The Gateway, or why the agent does not serve it. */
  #ownGateway(key: OwnerKey): Gateway | string {
    const { cluster } = this.#options;
    const gateway = cluster.gateway(gatewayKey(key));
    if (gateway === undefined) return 'It does not exist';
    if (gateway.deleting) return 'It is being deleted';
    const gatewayClass = cluster.gatewayClass(gateway.gatewayClassName);
    return isOurs(gatewayClass) ? gateway : notOurs(gateway.gatewayClassName, gatewayClass);
  }

  #translate(key: OwnerKey, gateway: Gateway): Translation {
    const { cluster, certificates, ofPools } = this.#options;
    const reads = new Set<Dependency>([
      `gateway ${gateway.key}`,
      `gatewayclass ${gateway.gatewayClassName}`,
      `listenersets ${gateway.key}`,
    ]);
    const memory = this.#memories.get(key) ?? new GatewayMemory();
    this.#memories.set(key, memory);
    // The Gateway itself: its listener sets, its addresses, and the certificate that it shows to members.
    const sets = attachedSets(gateway, cluster, reads);
    const addresses = gatewayVips(gateway, ofPools(key));
    const context = { view: cluster, certificates, reads };
    const forMembers = memberCertificate(gateway, context);

    // Its listeners: valid, and with ports that no older owner has.
    const found = gatewayListeners(gateway, sets.allowed, context);
    const judged = this.#withPorts(key, addresses.vips, found.listeners);
    const all = memory.listeners(judged.listeners);

    // The routes on each listener, without those that another namespace or another kind of route precedes.
    const attached = memory.routes({
      listeners: all,
      parents: [`gateway ${gateway.key}`, ...sets.all.map((set): RouteParent => `listenerset ${set.key}`)],
      resolved: this.#routes,
      certificate: forMembers.certificate?.name,
      ...context,
    });
    const isShared = !this.#options.settings().hostsOfOneNamespace;
    const owned = isShared
      ? { routes: attached, listeners: all }
      : hostsOfOneNamespace(attached, all, sets.allowed);
    const { listeners } = owned;
    const routes = ofOneKind(owned.routes, isShared);
    for (const each of dependenciesOf(routes)) reads.add(each);
    const places = routesByListener(routes);

    // What clients meet before any route: options of the Gateway, the users of routes, and the keys of their tokens.
    const front = frontOptions(gateway, [], certificates, this.#options.settings());
    for (const each of front.reads) reads.add(each);
    const userProblems: Problem[] = [];
    const users = userLists(authRoutesOf(routes), certificates, reads, userProblems);
    const tokenKeys = tokenKeySets(tokenRoutesOf(routes), certificates, reads, userProblems);

    // The listeners of the model, and the status of each object that had a part in them.
    const { listeners: model, problems: ofMembers } = modelListeners({
      owner: { key, vips: addresses.vips },
      listeners,
      certificatesOf: found.certificates,
      places,
      memory,
      clients: { front, users, tokenKeys, asksServers: asksServers(routes) },
      translator: this.#options,
      reads,
    });
    const pools = poolsOf(routes);
    const { statuses, problems } = gatewayStatuses({
      owner: { key, gateway, sets, addresses, memberCertificate: forMembers },
      listeners,
      attached: { routes, places, pools },
      model,
      memory,
      context,
    });
    return {
      result: loadBalancerOf(key, addresses.vips, model, [
        ...addresses.problems,
        ...judged.problems,
        ...front.problems,
        ...userProblems,
        ...problems,
        ...problemsOf(routes),
        ...ofMembers,
        ...shadowedOn(model, memory),
      ]),
      reads: [...reads],
      pools,
      statuses,
    };
  }

  /** A listener whose port another owner has on all addresses is not accepted. */
  #withPorts(
    key: OwnerKey,
    vips: readonly Vip[],
    listeners: readonly GatewayListener[],
  ): { readonly listeners: readonly GatewayListener[]; readonly problems: readonly Problem[] } {
    const { ofPools, desired } = this.#options;
    const { portOwners } = desired;
    const problems: Problem[] = [];
    const faults = new Map<string, RefusalReason | undefined>();
    const faultOf = ({ spec }: GatewayListener): RefusalReason | undefined => {
      const protocol = transportOf(spec);
      const { port } = spec;
      const place = `${protocol} ${port}`;
      if (faults.has(place)) return faults.get(place);
      const addresses = vips.map(({ address }) => address);
      const { own, refused } = ownAddresses(
        key,
        { protocol, port },
        addresses,
        portOwners,
        portRefusal(key, ofPools(key)),
      );
      problems.push(...refused);
      const message = refused.at(-1)?.message;
      const fault =
        own.length > 0 || message === undefined ? undefined : { reason: 'PortUnavailable', message };
      faults.set(place, fault);
      return fault;
    };
    const judged = listeners.map((listener) => {
      const fault = faultOf(listener);
      if (fault === undefined || listener.notAccepted !== undefined) return listener;
      return { ...listener, notAccepted: fault };
    });
    return { listeners: judged, problems };
  }
}

function gatewayKey(key: OwnerKey): string {
  const { namespace, name } = ownerOf(key);
  return `${namespace}/${name}`;
}

/** Each once, although listeners of both families, and of several ports, have the same routes. */
function shadowedOn(model: readonly Listener[], memory: GatewayMemory): readonly Problem[] {
  const problems = new Map<string, Problem>();
  for (const { routing } of model)
    for (const section of routing?.kind === 'http' ? routing.sections : [])
      for (const problem of memory.shadowedIn(section.name))
        problems.set(`${problem.object} ${problem.message}`, problem);
  return [...problems.values()];
}
