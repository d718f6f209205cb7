// Translates Gateways: one load balancer from one Gateway, the ListenerSets attached to it, and all their routes, with the
// statuses of all of these (https://gateway-api.sigs.k8s.io/reference/spec/).
// Reads the store of objects, the settings and the index of port owners; remembers what did not change, so that the change of
// one route among thousands costs little.

import { compactList } from '../../base/compact.ts';
import type { Gateway } from '../../kubernetes/gateway/gateway-objects.ts';
import type { Dependency, DesiredState, RouteParent } from '../../model/desired-state.ts';
import type { Listener, OwnerKey, Problem, Vip } from '../../model/load-balancer.ts';
import { objectInWords, ownerOf } from '../../model/names.ts';
import type { PortRequest } from '../../model/port-owners.ts';
import { ageOf, precedenceOf } from '../precedence.ts';
import type { AddressesView } from '../service/service-vips.ts';
import type { CertificatesView } from '../service/tls.ts';
import type { RequestedPorts, Translation, Translator } from '../translate.ts';
import type { TranslateSettings } from '../translate-settings.ts';
import { attachedSets } from './attached-sets.ts';
import { type Fault, isOurs, notOurs } from './conditions.ts';
import { GatewayMemory } from './gateway-memory.ts';
import { gatewayStatuses } from './gateway-statuses.ts';
import type { GatewayView } from './gateway-view.ts';
import { gatewayVips } from './gateway-vips.ts';
import { memberCertificate } from './listener-tls.ts';
import { type GatewayListener, gatewayListeners, transportOf } from './listeners.ts';
import { modelListeners } from './model-listeners.ts';
import { ResolvedRoutes } from './resolved-route.ts';
import { dependenciesOf, placesByListener, poolsOf, problemsOf } from './route-portions.ts';

export interface GatewayTranslatorOptions {
  readonly cluster: GatewayView;
  /** The settings in force. */
  readonly settings: () => TranslateSettings;
  /** The addresses that a Gateway has from address pools. */
  readonly ofPools: AddressesView;
  readonly certificates: CertificatesView;
  readonly desired: Pick<DesiredState, 'portOwners'>;
}

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
    for (const vip of gatewayVips(gateway, ofPools(key)).vips) {
      const precedence = precedenceOf(vip, { isOfFolder, statusIPs: gateway.statusIPs });
      for (const spec of places.values())
        ports.push({ address: vip.address, protocol: transportOf(spec), port: spec.port, ...precedence });
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
    const sets = attachedSets(gateway, cluster, reads);
    const addresses = gatewayVips(gateway, ofPools(key));
    const context = { view: cluster, certificates, reads };
    const forMembers = memberCertificate(gateway, context);
    const judged = this.#withPorts(key, addresses.vips, gatewayListeners(gateway, sets.allowed, context));
    const listeners = memory.listeners(judged.listeners);
    const routes = memory.routes({
      listeners,
      parents: [`gateway ${gateway.key}`, ...sets.all.map((set): RouteParent => `listenerset ${set.key}`)],
      resolved: this.#routes,
      certificate: forMembers.certificate?.name,
      ...context,
    });
    for (const each of dependenciesOf(routes)) reads.add(each);
    const places = placesByListener(routes);
    const model = modelListeners({
      key,
      gateway,
      listeners,
      places,
      vips: addresses.vips,
      memory,
      isOwn: (place) => this.#isOwn(key, place),
      ...this.#options,
      reads,
    });
    const pools = poolsOf(routes);
    const { statuses, problems } = gatewayStatuses({
      key,
      gateway,
      sets,
      listeners,
      routes,
      places,
      pools,
      addresses,
      model,
      memory,
      memberCertificate: forMembers,
      ...context,
    });
    const { namespace, name } = gateway;
    return {
      result: {
        kind: 'LoadBalancer',
        key,
        namespace,
        name,
        vips: addresses.vips,
        listeners: model,
        problems: compactList([
          ...addresses.problems,
          ...judged.problems,
          ...problems,
          ...problemsOf(routes),
          ...shadowedOn(model, memory),
        ]),
      },
      reads: [...reads],
      pools,
      statuses,
    };
  }

  #isOwn(key: OwnerKey, place: { address: string; protocol: 'TCP' | 'UDP'; port: number }): boolean {
    const owner = this.#options.desired.portOwners.ownerOf(place);
    return owner === undefined || owner === key;
  }

  /** A listener whose port another owner has on all addresses is not accepted. */
  #withPorts(
    key: OwnerKey,
    vips: readonly Vip[],
    listeners: readonly GatewayListener[],
  ): { readonly listeners: readonly GatewayListener[]; readonly problems: readonly Problem[] } {
    const problems: Problem[] = [];
    const faults = new Map<string, Fault | undefined>();
    const faultOf = ({ spec }: GatewayListener): Fault | undefined => {
      const protocol = transportOf(spec);
      const { port } = spec;
      const place = `${protocol} ${port}`;
      if (faults.has(place)) return faults.get(place);
      const taken = vips.filter(({ address }) => !this.#isOwn(key, { address, protocol, port }));
      for (const { address } of taken) {
        const owner = this.#options.desired.portOwners.ownerOf({ address, protocol, port }) ?? '';
        const message = `Cannot listen on ${address} ${protocol} port ${port}: the ${objectInWords(owner)} holds it`;
        problems.push({ object: `Gateway ${gatewayKey(key)}`, reason: 'AddressInUse', message });
      }
      const isLost = vips.length > 0 && taken.length === vips.length;
      const fault = isLost
        ? { reason: 'PortUnavailable', message: problems.at(-1)?.message ?? '' }
        : undefined;
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

const NO_PORTS: RequestedPorts = { created: 0, ports: [] };

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
