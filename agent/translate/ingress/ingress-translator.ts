// Translates Ingresses: one load balancer from all Ingresses of one class, on ports 80 and 443. The rules are those of the
// Kubernetes API reference (networking.k8s.io/v1); what it leaves open is as in ingress-nginx.
// Reads the store of objects, the settings and the index of port owners; remembers what did not change.

import { quote } from '../../base/quote.ts';
import { INGRESS_CONTROLLER } from '../../kubernetes/class-names.ts';
import type { Ingress, IngressClass } from '../../kubernetes/ingress/ingress-objects.ts';
import type { Service } from '../../kubernetes/objects.ts';
import { portRefusal } from '../../kubernetes/port-limit.ts';
import type { Dependency } from '../../model/desired-state.ts';
import type { Listener, OwnerKey, Problem, Vip } from '../../model/load-balancer.ts';
import { shownAddress } from '../../model/load-balancer.ts';
import { objectOf, ownerOf } from '../../model/names.ts';
import type { ObjectStatus } from '../../model/object-status.ts';
import type { AskedTls, PoolUse } from '../../model/pool-uses.ts';
import type { ExternalAuth, TlsRouting } from '../../model/routes.ts';
import { SERVE_WITHOUT } from '../../protection/judge-names.ts';
import { ownAddresses } from '../own-addresses.ts';
import { ageOf, precedenceOf } from '../precedence.ts';
import { frontOptions } from '../routes/front-options.ts';
import { byPrecedence } from '../routes/host-routes.ts';
import { type TokenRoute, tokenKeySets } from '../routes/route-tokens.ts';
import { type AuthRoute, userLists } from '../routes/route-users.ts';
import { type RoutedPort, routedListener } from '../routes/routed-listener.ts';
import { SectionHosts } from '../routes/section-hosts.ts';
import { shadowedRoutes } from '../routes/shadowed-routes.ts';
import { loadBalancerOf } from '../service/plain-listener.ts';
import { parseVip, withPublic } from '../service/service-vips.ts';
import type { TranslatorOptions } from '../service/translator-options.ts';
import { NO_PORTS, type RequestedPorts, type Translation, type Translator } from '../translate.ts';
import { narrowerCanaries, strangeCanaries, unverifiedCanaries } from './canaries.ts';
import { plainHosts, secureHosts } from './class-hosts.ts';
import { classRouting } from './class-routing.ts';
import { type AskedService, CLASS_AUTH_ANNOTATIONS, classAuth } from './external-auth.ts';
import { type AuthRoutes, withAuthRoutes } from './external-auth-routes.ts';
import { type IngressGuards, ingressGuards } from './ingress-guards.ts';
import { ingressProblems, memberTlsProblems } from './ingress-problems.ts';
import { IngressReader } from './ingress-reader.ts';
import type { ReadIngress } from './ingress-rules.ts';
import { ingressTls } from './ingress-tls.ts';
import { consentOf } from './nginx-annotations.ts';
import { ownedHosts, sharedHosts } from './owned-hosts.ts';
import { passedHosts, passthroughOf } from './ssl-passthrough.ts';

/** The part of the store of objects that translation reads. */
export interface IngressView {
  ingressClass(name: string): IngressClass | undefined;
  /** True if it comes from a folder of manifests of this host. */
  isOfManifest(ofClass: Pick<IngressClass, 'kind' | 'key'>): boolean;
  ingressesOf(className: string): readonly Ingress[];
  service(key: string): Service | undefined;
}

export type IngressTranslatorOptions = TranslatorOptions<IngressView>;

const HTTP = 80;
const HTTPS = 443;
/** Annotations of a class besides those of its listeners, without a prefix. */
const CLASS_ANNOTATIONS = ['load-balancer-ips', 'tls-certificate', SERVE_WITHOUT, ...CLASS_AUTH_ANNOTATIONS];

/** What one class remembers from one translation to the next. */
interface Memory {
  readonly plain: SectionHosts;
  readonly secure: SectionHosts;
}

interface OnClass {
  readonly ingress: Ingress;
  readonly read: ReadIngress;
}

export class IngressTranslator implements Translator {
  readonly #options: IngressTranslatorOptions;
  readonly #reader: IngressReader;
  readonly #memories = new Map<OwnerKey, Memory>();

  constructor(options: IngressTranslatorOptions) {
    this.#options = options;
    this.#reader = new IngressReader((key) => options.cluster.service(key));
  }

  ports(key: OwnerKey): RequestedPorts {
    const ofClass = this.#ownClass(key);
    if (typeof ofClass === 'string' || this.#ingressesOf(ofClass).length === 0) return NO_PORTS;
    const isOfFolder = this.#options.cluster.isOfManifest(ofClass);
    const statusIPs = this.#ingressesOf(ofClass).flatMap((each) => each.statusIPs);
    const refusalOf = portRefusal(key, this.#options.ofPools(key));
    const ports = this.#vips(key, ofClass).flatMap((vip) => {
      const precedence = precedenceOf(vip, { isOfFolder, statusIPs });
      return [HTTP, HTTPS]
        .map((port) => ({
          address: vip.address,
          protocol: 'TCP' as const,
          port,
          ...precedence,
        }))
        .filter((place) => refusalOf(place.address, place) === undefined);
    });
    return { created: ageOf(ofClass.created, isOfFolder), ports };
  }

  translate(key: OwnerKey): Translation {
    const ofClass = this.#ownClass(key);
    if (typeof ofClass === 'object') return this.#translate(key, ofClass);
    this.#memories.delete(key);
    const { name } = ownerOf(key);
    if (this.#options.cluster.ingressClass(name) === undefined) return { result: undefined, reads: [] };
    return { result: { kind: 'Ignored', key, reason: ofClass }, reads: [`ingressclass ${name}`] };
  }

  /** The class, or why the agent does not serve it. */
  #ownClass(key: OwnerKey): IngressClass | string {
    const ofClass = this.#options.cluster.ingressClass(ownerOf(key).name);
    if (ofClass === undefined) return 'It does not exist';
    if (ofClass.controller === INGRESS_CONTROLLER) return ofClass;
    return `Its spec.controller is ${quote(ofClass.controller)}, not "${INGRESS_CONTROLLER}"`;
  }

  /** The oldest one first. */
  #ingressesOf({ name }: IngressClass): readonly Ingress[] {
    return this.#options.cluster
      .ingressesOf(name)
      .filter(({ deleting, otherClassName }) => !deleting && otherClassName === '')
      .toSorted(byPrecedence);
  }

  #vips(key: OwnerKey, { annotations }: IngressClass): readonly Vip[] {
    const ofPools = this.#options.ofPools(key);
    const source = ofPools === undefined ? 'annotation' : 'pool';
    const texts =
      ofPools?.addresses.map(({ address }) => address) ??
      (annotations['headgate.io/load-balancer-ips'] ?? '').split(',').filter((text) => text.trim() !== '');
    const vips = texts.map((text) => parseVip(text.trim(), source)).filter((vip) => typeof vip !== 'string');
    return withPublic(vips, ofPools);
  }

  #translate(key: OwnerKey, ofClass: IngressClass): Translation {
    const { certificates, ofPools } = this.#options;
    const reads = new Set<Dependency>([`ingressclass ${ofClass.name}`, `ingresses ${ofClass.name}`]);
    const consent = consentOf(ofClass.annotations);
    const auth = classAuth(ofClass.annotations);
    const all = this.#ingressesOf(ofClass).map((ingress) => ({
      ingress,
      read: this.#reader.of(ingress, consent, auth),
    }));
    for (const { read } of all) for (const service of read.services) reads.add(`service ${service}`);
    const problems: Problem[] = [
      ...(ofPools(key)?.problems ?? []),
      ...auth.faults.map(
        (message): Problem => ({ object: objectOf(key), reason: 'InvalidAnnotation', message }),
      ),
      ...all.flatMap(ingressProblems),
    ];
    const isShared = !this.#options.settings().hostsOfOneNamespace;
    const hosts = isShared ? sharedHosts(all) : ownedHosts(all, problems);
    const { ingresses: owned } = hosts;
    problems.push(...strangeCanaries(owned));
    const vips = this.#vips(key, ofClass);
    const guards = ingressGuards(owned, certificates, reads, problems);
    const { tls, isServed } = ingressTls(ofClass, hosts, guards.hosts, certificates, reads, problems);
    const isHttps = (host: string): boolean => tls !== undefined && isServed(host);
    const memory = this.#memories.get(key) ?? {
      plain: new SectionHosts('by-length'),
      secure: new SectionHosts('by-length'),
    };
    this.#memories.set(key, memory);
    const inClear = plainHosts(hosts, memory.plain, guards, isHttps);
    const inTls = secureHosts(hosts, memory.secure, guards);
    const askedRoutes = askedBy(owned, tls === undefined ? [inClear] : [inTls, inClear], guards);
    const plainAsking = withAuthRoutes(inClear, askedRoutes);
    const secureAsking = withAuthRoutes(inTls, askedRoutes);
    const [plain, secure] = [plainAsking.hosts, secureAsking.hosts];
    problems.push(...(tls === undefined ? plainAsking : secureAsking).problems);
    problems.push(
      ...secure.flatMap(shadowedRoutes),
      ...narrowerCanaries(owned),
      ...unverifiedCanaries(owned),
    );
    const front = frontOptions(ofClass, CLASS_ANNOTATIONS, certificates, this.#options.settings());
    for (const each of front.reads) reads.add(each);
    problems.push(...front.problems);
    const users = userLists(authRoutes(owned), certificates, reads, problems);
    const tokenKeys = tokenKeySets(tokenRoutes(owned), certificates, reads, problems);
    const authUses = [...plainAsking.uses, ...secureAsking.uses];
    const replacesErrors = owned.some(({ read }) => read.replacesErrors);
    const asksServers =
      authUses.length > 0 ||
      owned.some(({ read: { asked } }) => asked !== undefined && asked.route === undefined);
    problems.push(...owned.flatMap((each) => memberTlsProblems(each, certificates, reads)));
    const passed = passedHosts(owned, problems);
    const ended = tls && owned.flatMap(({ read }) => read.hosts.map(({ host }) => host));
    const passing = front.isClosed ? undefined : passthroughOf(passed, ended);
    const ports = [
      { port: HTTP, routing: classRouting(plain), tls: undefined },
      ...(tls === undefined
        ? []
        : [{ port: HTTPS, routing: classRouting(secure, guards.hosts), tls, dispatch: passing }]),
      ...(tls === undefined && passing !== undefined ? [{ port: HTTPS, routing: passing, tls }] : []),
    ];
    const listeners = (all.length === 0 ? [] : (['v4', 'v6'] as const)).flatMap((family) =>
      ports.flatMap((each) =>
        this.#listener(
          { ...each, key, family, front, users, tokenKeys, asksServers, replacesErrors },
          vips,
          problems,
        ),
      ),
    );
    return {
      result: loadBalancerOf(key, vips, listeners, problems),
      reads: [...reads],
      pools: poolsOf(owned, authUses),
      statuses: all.map(({ ingress }) => statusOf(ingress, vips, listeners)),
    };
  }

  /** None without an address of the family. */
  #listener(
    place: Omit<RoutedPort, 'protocol' | 'addresses'> & { readonly dispatch?: TlsRouting | undefined },
    vips: readonly Vip[],
    problems: Problem[],
  ): readonly Listener[] {
    const { desired, ofPools, settings } = this.#options;
    const { key, port, family, dispatch } = place;
    const named = vips.filter((vip) => vip.family === family).map(({ address }) => address);
    if (named.length === 0) return [];
    const protocol = 'TCP';
    const { own: addresses, refused } = ownAddresses(
      key,
      { protocol, port },
      named,
      desired.portOwners,
      portRefusal(key, ofPools(key)),
    );
    problems.push(...refused);
    const listener = routedListener({ ...place, protocol, addresses }, settings());
    return [{ ...listener, ...(dispatch && { dispatch }) }];
  }
}

function authRoutes(all: readonly OnClass[]): readonly AuthRoute[] {
  return all.flatMap(({ ingress, read }) =>
    read.usersSecret === '' ? [] : [{ object: `Ingress ${ingress.key}`, secret: read.usersSecret }],
  );
}

function tokenRoutes(all: readonly OnClass[]): readonly TokenRoute[] {
  return all.flatMap(({ ingress, read }) =>
    read.tokenKeys === '' ? [] : [{ object: `Ingress ${ingress.key}`, keys: read.tokenKeys }],
  );
}

/** The services that are asked by a host of the class. */
function askedBy(
  all: readonly OnClass[],
  served: AuthRoutes['served'],
  { hosts }: Pick<IngressGuards, 'hosts'>,
): AuthRoutes {
  const asked = new Map<ExternalAuth, AskedService>();
  const tlsOf = new Map<OwnerKey, AskedTls>();
  for (const { read } of all) {
    if (read.asked?.route !== undefined) asked.set(read.asked.externalAuth, read.asked);
    for (const { pool, tls } of read.uses) if (tls !== undefined) tlsOf.set(pool, tls);
  }
  return {
    asked,
    served,
    isGuarded: (host) => hosts.has(host) || hosts.has(''),
    tlsOf: (pool) => tlsOf.get(pool),
  };
}

function poolsOf(all: readonly OnClass[], asked: readonly PoolUse[]): readonly PoolUse[] {
  const uses = new Map(asked.map((use) => [`${use.pool} ${use.port}`, use]));
  for (const { read } of all) for (const use of read.uses) uses.set(`${use.pool} ${use.port}`, use);
  return [...uses.values()];
}

function statusOf(
  { namespace, name, uid, generation }: Ingress,
  vips: readonly Vip[],
  listeners: readonly Listener[],
): ObjectStatus {
  return {
    kind: 'Ingress',
    namespace,
    name,
    uid,
    generation,
    addresses: vips.map(shownAddress).filter(Boolean),
    ports: [...new Set(listeners.map(({ port }) => port))],
    programmedBy: listeners.map((listener) => listener.name),
  };
}
