// Translates Ingresses: one load balancer from all Ingresses of one class, on ports 80 and 443. The rules are those of the
// Kubernetes API reference (networking.k8s.io/v1); what it leaves open is as in ingress-nginx.
// Reads the store of objects, the settings and the index of port owners; remembers what did not change.

import { quote } from '../../base/quote.ts';
import { INGRESS_CONTROLLER } from '../../kubernetes/class-names.ts';
import type { Ingress, IngressClass } from '../../kubernetes/ingress/ingress-objects.ts';
import type { Service } from '../../kubernetes/objects.ts';
import type { Dependency } from '../../model/desired-state.ts';
import type { Listener, OwnerKey, Problem, Vip } from '../../model/load-balancer.ts';
import { ownerOf } from '../../model/names.ts';
import type { ObjectStatus } from '../../model/object-status.ts';
import type { PoolUse } from '../../model/pool-uses.ts';
import type { HostRoutes, RouteSection } from '../../model/routes.ts';
import { ownAddresses } from '../own-addresses.ts';
import { ageOf, precedenceOf } from '../precedence.ts';
import { frontOptions } from '../routes/front-options.ts';
import { ANY_HOST, hostKey, hostPattern, hostText } from '../routes/host-pattern.ts';
import { byPrecedence, HostRoutesBook, type RouteEntries } from '../routes/host-routes.ts';
import { type AuthRoute, userLists } from '../routes/route-users.ts';
import { type RoutedPlace, routedListener } from '../routes/routed-listener.ts';
import { shadowedRoutes } from '../routes/shadowed-routes.ts';
import { loadBalancerOf } from '../service/plain-listener.ts';
import { parseVip } from '../service/service-vips.ts';
import type { TranslatorOptions } from '../service/translator-options.ts';
import { NO_PORTS, type RequestedPorts, type Translation, type Translator } from '../translate.ts';
import { withCanaries } from './canaries.ts';
import { IngressReader } from './ingress-reader.ts';
import type { HostEntries, ReadIngress } from './ingress-rules.ts';
import { ingressTls } from './ingress-tls.ts';

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
const SECTION = 'all';

/** What one class remembers from one translation to the next. */
interface Memory {
  readonly plain: HostRoutesBook;
  readonly secure: HostRoutesBook;
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
    const ports = this.#vips(key, ofClass).flatMap((vip) => {
      const precedence = precedenceOf(vip, { isOfFolder, statusIPs });
      return [HTTP, HTTPS].map((port) => ({
        address: vip.address,
        protocol: 'TCP' as const,
        port,
        ...precedence,
      }));
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
    return texts.map((text) => parseVip(text.trim(), source)).filter((vip) => typeof vip !== 'string');
  }

  #translate(key: OwnerKey, ofClass: IngressClass): Translation {
    const { certificates, ofPools } = this.#options;
    const reads = new Set<Dependency>([`ingressclass ${ofClass.name}`, `ingresses ${ofClass.name}`]);
    const all = this.#ingressesOf(ofClass).map((ingress) => ({ ingress, read: this.#reader.of(ingress) }));
    for (const { read } of all) for (const service of read.services) reads.add(`service ${service}`);
    const problems: Problem[] = [...(ofPools(key)?.problems ?? []), ...all.flatMap(problemsOf)];
    const owned = this.#withOwnedHosts(all, problems);
    const vips = this.#vips(key, ofClass);
    const { tls, guarded, closed } = ingressTls(ofClass, owned, certificates, reads, problems);
    const memory = this.#memories.get(key) ?? { plain: new HostRoutesBook(), secure: new HostRoutesBook() };
    this.#memories.set(key, memory);
    const served = owned.map((each) => (closed.has(each.ingress.key) ? refused(each) : each));
    const plain = hostRoutes(served, memory.plain, ({ plain: entries }) => entries);
    const secure = hostRoutes(served, memory.secure, ({ secure: entries }) => entries);
    problems.push(...secure.flatMap(shadowedRoutes));
    const front = frontOptions(
      ofClass.annotations,
      `IngressClass ${ofClass.name}`,
      '',
      certificates,
      this.#options.settings(),
    );
    for (const each of front.reads) reads.add(each);
    problems.push(...front.problems);
    const users = userLists(authRoutes(owned), certificates, reads, problems);
    const ports = [
      { port: HTTP, sections: sectionsOf(plain, NO_HOSTS), tls: undefined },
      ...(tls === undefined ? [] : [{ port: HTTPS, sections: sectionsOf(secure, guarded), tls }]),
    ];
    const listeners = (all.length === 0 ? [] : (['v4', 'v6'] as const)).flatMap((family) =>
      ports.flatMap((each) => this.#listener({ ...each, key, family, front, users }, vips, problems)),
    );
    return {
      result: loadBalancerOf(key, vips, listeners, problems),
      reads: [...reads],
      pools: poolsOf(owned),
      statuses: all.map(({ ingress }) => statusOf(ingress, vips, listeners)),
    };
  }

  /** Without the hosts that another namespace has had before, if the settings ask for that. */
  #withOwnedHosts(all: readonly OnClass[], problems: Problem[]): readonly OnClass[] {
    if (!this.#options.settings().hostsOfOneNamespace) return all;
    const owners = new Map<string, string>();
    return all.map(({ ingress, read }) => {
      const { namespace, key } = ingress;
      const hosts = read.hosts.filter(({ host }) => {
        const owner = owners.get(host) ?? namespace;
        owners.set(host, owner);
        if (owner === namespace) return true;
        const message = `Cannot serve host "${host || '*'}": an older Ingress of namespace "${owner}" has it, and each host belongs to one namespace (setting hostsOfOneNamespace)`;
        problems.push({ object: `Ingress ${key}`, reason: 'RouteShadowed', message });
        return false;
      });
      return hosts.length === read.hosts.length ? { ingress, read } : { ingress, read: { ...read, hosts } };
    });
  }

  /** None without an address of the family. */
  #listener(
    place: Omit<RoutedPlace, 'protocol' | 'addresses' | 'routing'> & {
      readonly sections: readonly RouteSection[];
    },
    vips: readonly Vip[],
    problems: Problem[],
  ): readonly Listener[] {
    const { desired, settings } = this.#options;
    const { key, port, family, sections } = place;
    const named = vips.filter((vip) => vip.family === family).map(({ address }) => address);
    if (named.length === 0) return [];
    const protocol = 'TCP';
    const { own: addresses, refused } = ownAddresses(key, { protocol, port }, named, desired.portOwners);
    problems.push(...refused);
    const routing = { kind: 'http', sections, detectMisdirected: sections.length > 1 } as const;
    return [routedListener({ ...place, protocol, addresses, routing }, settings())];
  }
}

const NO_HOSTS: ReadonlySet<string> = new Set();

/**
 * A host whose clients need a certificate is a section of its own: a client that names another host in its handshake does not
 * get there.
 */
function sectionsOf(hosts: readonly HostRoutes[], guarded: ReadonlySet<string>): readonly RouteSection[] {
  const isGuarded = ({ host }: HostRoutes): boolean => guarded.has(host.kind === 'any' ? '' : hostText(host));
  return [
    { name: SECTION, hostname: ANY_HOST, hosts: hosts.filter((each) => !isGuarded(each)) },
    ...hosts
      .filter(isGuarded)
      .map((each) => ({ name: hostText(each.host), hostname: each.host, hosts: [each] })),
  ];
}

function authRoutes(all: readonly OnClass[]): readonly AuthRoute[] {
  return all.flatMap(({ ingress, read }) =>
    read.usersSecret === '' ? [] : [{ object: `Ingress ${ingress.key}`, secret: read.usersSecret }],
  );
}

/** It answers 403 to all. */
function refused({ ingress, read }: OnClass): OnClass {
  const closed = (routes: RouteEntries): RouteEntries => ({
    ...routes,
    entries: routes.entries.map(({ match, rule }) => ({
      match,
      rule: { ...rule, action: { kind: 'answer', status: 403 } as const, cors: undefined },
    })),
  });
  const ofHost = (entries: HostEntries): HostEntries => ({
    host: entries.host,
    plain: closed(entries.plain),
    secure: closed(entries.secure),
  });
  const { hosts, fallback } = read;
  return { ingress, read: { ...read, hosts: hosts.map(ofHost), fallback: fallback && ofHost(fallback) } };
}

function hostRoutes(
  all: readonly OnClass[],
  book: HostRoutesBook,
  side: (entries: HostEntries) => RouteEntries,
): readonly HostRoutes[] {
  book.begin();
  const canaries = all.flatMap(({ read }) => read.canaries);
  const byHost = new Map<string, RouteEntries[]>();
  const add = (entries: HostEntries): void => {
    const found = byHost.get(entries.host) ?? [];
    byHost.set(entries.host, found);
    found.push(withCanaries(entries.host, side(entries), canaries));
  };
  for (const { read } of all) read.hosts.forEach(add);
  for (const { read } of all) if (read.fallback !== undefined) add(read.fallback);
  return Array.from(byHost, ([host, entries]) => {
    const pattern = hostPattern(host, 'one-label');
    return book.of('', hostKey(pattern), pattern, entries);
  });
}

function poolsOf(all: readonly OnClass[]): readonly PoolUse[] {
  const uses = new Map<string, PoolUse>();
  for (const { read } of all) for (const use of read.uses) uses.set(`${use.pool} ${use.port}`, use);
  return [...uses.values()];
}

/** More annotations are counted. */
const MOST_NAMED = 5;

function problemsOf({ ingress, read }: OnClass): readonly Problem[] {
  const object = `Ingress ${ingress.key}`;
  const problems = read.faults.map((message): Problem => ({ object, reason: 'InvalidAnnotation', message }));
  if (read.ignored.length === 0) return problems;
  const named = read.ignored.slice(0, MOST_NAMED).map(quote).join(', ');
  const more = read.ignored.length > MOST_NAMED ? ` (and ${read.ignored.length - MOST_NAMED} more)` : '';
  const message = `These annotations have no effect here: ${named}${more}`;
  return [...problems, { object, reason: 'AnnotationIgnored', message }];
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
    addresses: vips.map(({ address }) => address),
    ports: [...new Set(listeners.map(({ port }) => port))],
    programmedBy: listeners.map((listener) => listener.name),
  };
}
